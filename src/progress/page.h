#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.h"
#include "progress/source_reading.h"

namespace halfwatt {

/// Our end of the shared page that a job writes its steps to (docs/progress.md): makes the
/// file, reads it, removes it.
class Page {
 public:
  /// Errors: a folder where no file can be made.
  static Result<std::unique_ptr<Page>> create(const std::filesystem::path& folder);
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Steps of the slowest rank, items of all of them. Never waits for a writer: of one that
  /// stands still in the middle of a change, it gives what was there before.
  SourceReading read(Seconds now);
  /// What was counted so far stays; writers of before are ignored from now on.
  void restart();
  /// Some thread of the job may have found no slot.
  bool is_full() const;

 private:
  struct Memory;
  /// One slot as it was last read whole.
  struct Slot {
    std::uint32_t generation = 0;
    std::uint32_t rank = 0;
    bool has_items = false;
    double steps = 0;
    Seconds at;
    double items = 0;
    LossCounts losses;
  };

  Page(std::filesystem::path path, std::unique_ptr<Memory> memory);
  void read_slot(std::size_t index, Seconds now);
  void add_up();

  static constexpr std::size_t kSlots = 127;
  std::filesystem::path path_;
  std::unique_ptr<Memory> memory_;
  std::uint32_t generation_ = 1;
  std::array<Slot, kSlots> slots_{};
  SourceReading reading_;
  SourceReading carried_;  ///< of the jobs before
};

}  // namespace halfwatt
