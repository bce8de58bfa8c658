#include "engine/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostBatch = 1'000'000;

Result<void> check_range(std::string_view what,
                         std::int64_t value,
                         std::int64_t least,
                         std::int64_t most) {
  if (value < least || value > most) {
    return bad_input(fmt::format("{} {}; needed {} to {}", what, value, least, most));
  }
  return {};
}

}  // namespace

// An image of a batch in the making. One thread writes it, without the lock.
struct Loader::Row {
  std::int64_t place = 0;
  bool valid = false;
  std::vector<BadImage> bad;  ///< come upon on the way to it
};

struct Loader::Filling {
  Batch batch;
  std::shared_ptr<const Order> order;  ///< of its epoch
  std::vector<Row> rows;
  std::size_t taken = 0;  ///< rows that a thread has begun
  std::size_t left = 0;   ///< rows that are not done
};

Result<std::unique_ptr<Loader>> Loader::open(const Source& source,
                                             LoaderOptions options,
                                             View view) {
  const std::int64_t images =
      options.places.empty() ? source.size() : static_cast<std::int64_t>(options.places.size());
  for (const auto& checked :
       {check_range("decode threads:", options.threads, 1, kMostThreads),
        check_range("batch:", options.batch, 1, kMostBatch),
        check_range("batches ahead:", options.ahead, 1, kMostBatch),
        check_range("the data's epoch:", options.start.epoch, 0, options.epochs),
        check_range("images of the epoch that are behind:", options.start.images, 0, images)}) {
    if (!checked) {
      return checked.error();
    }
  }
  if (options.training && images < options.batch) {
    return bad_input(
        fmt::format("{} images to train on; a batch needs {}", images, options.batch));
  }
  for (const std::int64_t place : options.places) {
    HALFWATT_CHECK(place >= 0 && place < source.size(), "places of the source");
  }
  std::unique_ptr<Loader> loader(new Loader(source, std::move(options), std::move(view)));
  for (int thread = 0; thread < loader->options_.threads; ++thread) {
    loader->threads_.emplace_back(
        [self = loader.get()](const std::stop_token& stop) { self->work(stop); });
  }
  return loader;
}

Loader::Loader(const Source& source, LoaderOptions options, View view)
    : source_(&source), options_(std::move(options)), view_(std::move(view)) {
  begin_ = from(options_.start);
  provide_memory();
}

// For every batch that may be begun. By the caller's thread, as it is the caller who frees
// them: of memory that one thread takes and another frees, the allocator keeps a heap for each.
void Loader::provide_memory() {
  std::vector<std::int64_t> extents{options_.batch};
  extents.insert(extents.end(), options_.image.shape.begin(), options_.image.shape.end());
  while (std::ssize(free_) + std::ssize(filling_) < options_.ahead) {
    free_.emplace_back(TensorType{options_.image.dtype, Shape(extents)});
  }
}

// Threads are asked to stop all at once; each would be waited for before the next is asked.
Loader::~Loader() {
  for (std::jthread& thread : threads_) {
    thread.request_stop();
  }
}

std::int64_t Loader::images() const {
  return options_.places.empty() ? source_->size()
                                 : static_cast<std::int64_t>(options_.places.size());
}

std::int64_t Loader::batches() const {
  const std::int64_t rest = options_.training ? 0 : options_.batch - 1;
  return (images() + rest) / options_.batch;
}

// The same position, or the next epoch's beginning where no batch starts there any more.
DataPosition Loader::from(DataPosition position) const {
  const std::int64_t needed = options_.training ? options_.batch : 1;
  return images() - position.images >= needed ? position : DataPosition{position.epoch + 1, 0};
}

Result<std::optional<Batch>> Loader::next() {
  if (failed_) {
    return *failed_;
  }
  const SteadyClock clock;
  const Seconds asked = clock.now();
  std::unique_ptr<Filling> filling;
  {
    std::unique_lock lock(mutex_);
    if (filling_.empty() && begin_.epoch >= options_.epochs) {
      return std::optional<Batch>();
    }
    ready_.wait(
        lock, [this] { return thrown_ || (!filling_.empty() && filling_.front()->left == 0); });
    if (thrown_) {
      std::rethrow_exception(thrown_);
    }
    filling = std::move(filling_.front());
    filling_.pop_front();
    provide_memory();
  }
  work_.notify_all();
  auto batch = finish(*filling);
  if (!batch) {
    failed_ = batch.error();
    return *failed_;
  }
  batch->waited = clock.now() - asked;
  return std::optional<Batch>(std::move(*batch));
}

void Loader::give_back(Batch batch) {
  const std::lock_guard lock(mutex_);
  if (std::ssize(free_) + std::ssize(filling_) <= options_.ahead) {
    free_.push_back(std::move(batch.images));
  }
}

void Loader::work(const std::stop_token& stop) {
  try {
    decode_rows(stop);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    thrown_ = std::current_exception();
    ready_.notify_all();
  }
}

void Loader::decode_rows(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto something_to_do = [this] {
    return with_rows_left() != nullptr ||
           (std::ssize(filling_) < options_.ahead && begin_.epoch < options_.epochs);
  };
  while (work_.wait(lock, stop, something_to_do) && !stop.stop_requested()) {
    if (with_rows_left() == nullptr) {
      begin_filling();
      work_.notify_all();
    }
    Filling& filling = *with_rows_left();
    const std::size_t at = filling.taken++;
    lock.unlock();
    fill(filling, at);
    lock.lock();
    if (--filling.left == 0) {
      ready_.notify_all();
    }
  }
}

Loader::Filling* Loader::with_rows_left() {
  const auto found = std::ranges::find_if(
      filling_, [](const auto& filling) { return filling->taken < filling->rows.size(); });
  return found == filling_.end() ? nullptr : found->get();
}

void Loader::begin_filling() {
  if (!order_ || begin_.images == 0) {
    Order order(static_cast<std::size_t>(images()));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    if (options_.training) {
      order = shuffled(images(), options_.seed, begin_.epoch);
    }
    for (std::int64_t& place : order) {
      place =
          options_.places.empty() ? place : options_.places[static_cast<std::size_t>(place)];
    }
    order_ = std::make_shared<const Order>(std::move(order));
  }
  auto filling = std::make_unique<Filling>();
  filling->order = order_;
  filling->rows.resize(
      static_cast<std::size_t>(std::min(options_.batch, images() - begin_.images)));
  filling->left = filling->rows.size();
  Batch& batch = filling->batch;
  batch.at = begin_;
  batch.next = from({begin_.epoch, begin_.images + std::ssize(filling->rows)});
  batch.images = std::move(free_.back());
  free_.pop_back();
  begin_ = batch.next;
  filling_.push_back(std::move(filling));
}

void Loader::fill(Filling& filling, std::size_t at) {
  Row& row = filling.rows[at];
  const Order& order = *filling.order;
  const auto first = static_cast<std::size_t>(filling.batch.at.images) + at;
  // Whatever else is decoded at the time, the same image stands in for a bad one.
  const bool stand_in = options_.training && options_.bad == BadImages::skip;
  for (std::size_t tries = 0; tries < (stand_in ? order.size() : 1); ++tries) {
    const std::int64_t place = order[(first + tries) % order.size()];
    const auto image = read_known(place, filling.batch.at.epoch);
    if (image) {
      row.place = place;
      row.valid = true;
      view_(*image, place, filling.batch.at.epoch,
            row_of(filling.batch.images, static_cast<std::int64_t>(at)));
      return;
    }
    row.bad.push_back({place, image.error().message});
  }
}

// Reads an image, unless it is known to be bad.
Result<Image> Loader::read_known(std::int64_t place, std::int64_t epoch) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = bad_.find(place); known != bad_.end()) {
      return bad_input(known->second);
    }
  }
  PartOf part;
  if (options_.part) {
    part = [&](std::int64_t width, std::int64_t height) {
      return options_.part(width, height, place, epoch);
    };
  }
  auto image = source_->read_part(place, part);
  if (!image) {
    const std::lock_guard lock(mutex_);
    bad_.emplace(place, image.error().message);
  }
  return image;
}

// Of a filled batch: rows move up over those that are left out, and what is bad is told once,
// in an order that no thread has a say in.
Result<Batch> Loader::finish(Filling& filling) {
  Batch& batch = filling.batch;
  for (std::int64_t at = 0; at < std::ssize(filling.rows); ++at) {
    const Row& row = filling.rows[static_cast<std::size_t>(at)];
    if (!row.bad.empty() && options_.bad == BadImages::stop) {
      return bad_input(row.bad.front().message);
    }
    if (!row.valid && options_.training) {
      return bad_input(fmt::format("none of {} images can be read; the first: {}",
                                   filling.order->size(), row.bad.front().message));
    }
    for (const BadImage& bad : row.bad) {
      if (told_.insert(bad.place).second) {
        batch.bad.push_back(bad);
      }
    }
    if (row.valid) {
      if (batch.valid != at) {
        std::ranges::copy(row_of(batch.images, at), row_of(batch.images, batch.valid).begin());
      }
      batch.labels.push_back(source_->label(row.place));
      batch.places.push_back(row.place);
      ++batch.valid;
    }
  }
  for (std::int64_t at = batch.valid; at < options_.batch; ++at) {
    std::ranges::fill(row_of(batch.images, at), std::byte{0});
  }
  return std::move(batch);
}

std::span<std::byte> Loader::row_of(const Tensor& images, std::int64_t at) const {
  const std::size_t bytes = options_.image.bytes();
  return images.view().bytes().subspan(static_cast<std::size_t>(at) * bytes, bytes);
}

}  // namespace halfwatt
