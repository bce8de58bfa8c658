#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "engine/data/source.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// Where in the data a training stands: images of the epoch's order that are behind it.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t images = 0;

  bool operator==(const DataPosition&) const = default;
};

/// What is done when an image cannot be read.
enum class BadImages {
  stop,  ///< the batch that needs it is an error
  /// In training the next good image of the order stands in for it, in evaluation it is left
  /// out; Batch::bad names it.
  skip,
};

/// What of a picture of this size its view gets to see, and at which size; it may differ
/// between places and epochs. Called by all threads at once.
using ViewPart = std::function<ResizedPart(
    std::int64_t width, std::int64_t height, std::int64_t place, std::int64_t epoch)>;

struct LoaderOptions {
  std::int64_t batch = 1;
  TensorType image;  ///< what the view writes for each of them: dtype and [C, H, W]
  std::uint64_t seed = 0;
  /// Training shuffles every epoch and drops the last batch where it is not full. Otherwise
  /// every image comes once an epoch, in the source's order.
  bool training = true;
  /// The images that count, as places of the source; all of them if there are none.
  std::vector<std::int64_t> places;
  DataPosition start;
  std::int64_t epochs = 1;  ///< where it ends, counted from epoch 0
  int threads = 1;          ///< that decode
  std::int64_t ahead = 3;   ///< most batches that are ready or in the making
  BadImages bad = BadImages::stop;
  ViewPart part;  ///< none: all of it, as large as it is
};

/// An image that cannot be read, and why.
struct BadImage {
  std::int64_t place = 0;
  std::string message;
};

struct Batch {
  Tensor images;                     ///< [batch, C, H, W]; zeros from `valid` on
  std::vector<std::int64_t> labels;  ///< `valid` of them
  std::vector<std::int64_t> places;  ///< in the source; `valid` of them
  std::int64_t valid = 0;            ///< images; below `batch`, down to 0, in evaluation alone
  DataPosition at;                   ///< of its first image
  DataPosition next;                 ///< where to start for the batch behind it
  std::vector<BadImage> bad;         ///< that no batch before it has told
  Seconds waited;                    ///< how long the caller stood still for it
};

/// Batches of a source, decoded ahead by threads of its own. Which images they hold follows
/// from the options but `threads` and `ahead`, and from which images are bad: never from how
/// fast a thread is. One thread at a time may call it.
class Loader {
 public:
  /// Writes the image as the network wants to see it: how often the training has seen the
  /// source (epoch) and the place are for its random numbers. Called by all threads at once.
  using View = std::function<void(
      const Image&, std::int64_t place, std::int64_t epoch, std::span<std::byte> to)>;

  /// `source` must outlive it. Errors (bad_input): a number out of range, or fewer images than
  /// one batch of training needs.
  static Result<std::unique_ptr<Loader>> open(const Source& source,
                                              LoaderOptions options,
                                              View view);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  /// Waits for the images that are being decoded.
  ~Loader();

  /// The next batch, of the next epoch behind an epoch's last one; nullopt behind the last
  /// epoch. Errors (bad_input): the first bad image of the batch, under BadImages::stop, or
  /// that there is no good one at all; again when asked again. Throws what the view threw.
  Result<std::optional<Batch>> next();
  /// Hands a batch back, so that its memory is used again.
  void give_back(Batch batch);

  /// Batches of an epoch that starts at its beginning.
  std::int64_t batches() const;
  /// Bad images that batches have told so far.
  std::int64_t bad_images() const { return static_cast<std::int64_t>(told_.size()); }

 private:
  using Order = std::vector<std::int64_t>;
  struct Row;
  struct Filling;

  Loader(const Source& source, LoaderOptions options, View view);

  void work(const std::stop_token& stop);
  void decode_rows(const std::stop_token& stop);
  Filling* with_rows_left();
  void begin_filling();
  void provide_memory();
  void fill(Filling& filling, std::size_t at);
  Result<Image> read_known(std::int64_t place, std::int64_t epoch);
  Result<Batch> finish(Filling& filling);
  std::span<std::byte> row_of(const Tensor& images, std::int64_t at) const;
  std::int64_t images() const;
  DataPosition from(DataPosition position) const;

  const Source* source_;
  LoaderOptions options_;
  View view_;
  std::unordered_set<std::int64_t> told_;  ///< places of bad images; the caller's alone
  std::optional<Error> failed_;            ///< the caller's alone

  std::mutex mutex_;  ///< of all below
  std::condition_variable_any work_;
  std::condition_variable ready_;
  DataPosition begin_;  ///< of the next batch that is begun
  /// Of the epoch of begin_; shared with the batches in the making, which may be of the epoch
  /// before.
  std::shared_ptr<const Order> order_;
  std::deque<std::unique_ptr<Filling>> filling_;  ///< first the one that is given out next
  std::exception_ptr thrown_;                     ///< in a thread
  std::vector<Tensor> free_;                      ///< with filling_, never fewer than `ahead`
  std::unordered_map<std::int64_t, std::string> bad_;  ///< messages by place

  std::vector<std::jthread> threads_;  ///< last, so that they end first
};

}  // namespace halfwatt
