#include "engine/data/image_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace halfwatt {
namespace {

void shuffle(std::vector<std::int64_t>& places, Rng& rng) {
  for (std::size_t left = places.size(); left > 1; --left) {
    std::swap(places[left - 1], places[rng.next() % left]);
  }
}

}  // namespace

ImageSet ImageSet::at(std::span<const std::int64_t> places) const {
  ImageSet some;
  some.classes = classes;
  const Shape shape = images.shape().with(0, static_cast<std::int64_t>(places.size()));
  some.images = Tensor(TensorType{images.dtype(), shape});
  const auto from = images.view().bytes();
  const auto to = some.images.view().bytes();
  const std::size_t each = labels.empty() ? 0 : from.size() / labels.size();
  for (std::size_t at = 0; at < places.size(); ++at) {
    const auto place = static_cast<std::size_t>(places[at]);
    std::copy_n(from.data() + place * each, each, to.data() + at * each);
    some.labels.push_back(labels[place]);
  }
  return some;
}

Split stratified(std::span<const std::int64_t> labels, double held_out, std::uint64_t seed) {
  std::vector<std::vector<std::int64_t>> places_of;  // by label
  for (std::size_t at = 0; at < labels.size(); ++at) {
    const auto label = static_cast<std::size_t>(labels[at]);
    places_of.resize(std::max(places_of.size(), label + 1));
    places_of[label].push_back(static_cast<std::int64_t>(at));
  }
  Rng rng(seed);
  Split split;
  for (std::vector<std::int64_t>& places : places_of) {
    shuffle(places, rng);
    const std::ptrdiff_t out = std::lround(static_cast<double>(places.size()) * held_out);
    split.held_out.insert(split.held_out.end(), places.begin(), places.begin() + out);
    split.train.insert(split.train.end(), places.begin() + out, places.end());
  }
  return split;
}

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), std::int64_t{0});
  Rng rng(seed * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(epoch));
  shuffle(places, rng);
  return places;
}

}  // namespace halfwatt
