// bench_digits [MODE...]: trains on handwritten digits by data/digits.recipe.json, three seeds
// a mode, and holds the means to what the recipe promises: 97 % right at least, and all modes
// within 1 % of each other. Run from the repository's root.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/train/recipe_file.h"

namespace halfwatt {
namespace {

constexpr double kLeast = 0.97;
constexpr double kSpread = 0.01;

// The mean share of three seeds; nullopt if a run failed.
std::optional<double> mean_of(const RecipeFile& file, const Precision& mode, Backend& backend) {
  double sum = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto trained = train_by(file, mode, seed, backend);
    if (!trained) {
      fmt::print("{:10} {}\n", mode.name, trained.error().message);
      return std::nullopt;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double share = static_cast<double>(trained->evaluation.right) /
                         static_cast<double>(trained->evaluation.images);
    fmt::print("{:10} {:>4}  {:.4f}  loss {:.4f}  {}  {:5.1f} s\n", mode.name, seed, share,
               trained->evaluation.loss, text(trained->last.state), took.count());
    std::fflush(stdout);
    sum += share;
  }
  return sum / 3;
}

int run(const std::vector<std::string>& modes) {
  const auto file = read_recipe("data/digits.recipe.json");
  const auto backend = open_cpu();
  if (!file || !backend) {
    fmt::print("{}\n", file ? backend.error().message : file.error().message);
    return 2;
  }
  std::vector<double> means;
  for (const std::string& name : modes) {
    const auto mode = precision_named(name);
    const auto mean = mode ? mean_of(*file, *mode, **backend) : std::nullopt;
    if (!mean) {
      return 2;
    }
    fmt::print("{:10} mean  {:.4f}\n", name, *mean);
    means.push_back(*mean);
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  const bool good = *low >= kLeast && *high - *low <= kSpread;
  fmt::print("{}: lowest mean {:.4f}, highest {:.4f}\n", good ? "reached" : "MISSED", *low,
             *high);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace halfwatt

int main(int count, char** words) {
  std::vector<std::string> modes(words + 1, words + count);
  if (modes.empty()) {
    modes = {"fp32", "tf32", "amp-fp16", "amp-bf16", "fp16", "bf16", "fp8"};
  }
  return halfwatt::run(modes);
}
