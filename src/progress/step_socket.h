#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "progress/source_reading.h"
#include "progress/step_counter.h"
#include "progress/step_message.h"

namespace halfwatt {

/// The socket on which a job tells its steps, one message a datagram, from any number of
/// writers. The slowest rank counts.
class StepSocket {
 public:
  /// Errors: a folder where no socket can be made, or whose path is too long for one.
  static Result<std::unique_ptr<StepSocket>> listen(const std::filesystem::path& folder);
  ~StepSocket();
  StepSocket(const StepSocket&) = delete;
  StepSocket& operator=(const StepSocket&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  /// Takes what waits; never blocks, and gives up for now when it floods.
  SourceReading read(Seconds now);
  void restart();
  /// What nobody could read, once; empty if there was none since.
  std::string take_remark() { return std::exchange(remark_, {}); }

 private:
  struct Rank {
    StepCounter numbers;
    StepCounter items;
    double more = 0;  ///< steps told without a number
    double more_items = 0;
    bool has_items = false;
    Seconds at;
  };

  StepSocket(std::filesystem::path path, int descriptor);
  void take(const StepMessage& message, Seconds now);
  void add_up();
  void remark_on(std::string_view message);

  std::filesystem::path path_;
  int descriptor_;
  std::map<std::uint32_t, Rank> ranks_;
  double carried_steps_ = 0;  ///< of the jobs before
  std::optional<double> carried_items_;
  Losses losses_;
  SourceReading reading_;
  std::string remark_;
  bool has_remarked_ = false;
};

/// Tells a step to the socket at `path`. Waits up to a second while the reader is behind. False
/// if nobody reads there any more.
bool tell_step(const std::filesystem::path& path, const StepMessage& message);

}  // namespace halfwatt
