#include "engine/backend/null/null_backend.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "base/failure.h"

namespace halfwatt {
namespace {

class NullExecutable final : public Executable {
 public:
  NullExecutable(const std::vector<Step>& steps, int device)
      : steps_(&steps), device_(device) {}

  void run(StepProgress& progress) override {
    for (std::size_t at = 0; at < steps_->size(); ++at) {
      for (const Wait& wait : (*steps_)[at].waits) {
        progress.wait_for(wait);
      }
      progress.done(device_, static_cast<int>(at));
    }
  }

 private:
  const std::vector<Step>* steps_;
  int device_;
};

class NullBackend final : public Backend {
 public:
  explicit NullBackend(Target target)
      : target_(std::move(target)), allocated_(std::make_shared<Count>(0)) {}

  const Target& target() const override { return target_; }

  Buffer allocate(std::size_t bytes) override {
    const bool fits =
        !target_.memory || static_cast<double>(*allocated_ + bytes) <= target_.memory->value();
    // Addresses alone: neither memory nor swap stands behind them.
    const std::size_t mapped = std::max<std::size_t>(bytes, 1);
    void* const addresses = fits ? ::mmap(nullptr, mapped, PROT_NONE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                 : MAP_FAILED;
    if (addresses == MAP_FAILED) {
      throw Failure({ErrorKind::device,
                     fmt::format("{}: no {} bytes of memory left", target_.name, bytes)});
    }
    *allocated_ += bytes;
    const auto free = [bytes, mapped, count = allocated_](std::byte* data) {
      ::munmap(data, mapped);
      *count -= bytes;
    };
    return {std::shared_ptr<std::byte>(static_cast<std::byte*>(addresses), free), bytes};
  }

  std::size_t allocated() const override { return *allocated_; }

  void upload(std::byte* /*to*/, std::span<const std::byte> /*from*/) override {}
  void download(std::span<std::byte> to, const std::byte* /*from*/) override {
    std::fill(to.begin(), to.end(), std::byte{0xff});
  }

  std::unique_ptr<Executable> compile(const Plan& plan,
                                      int device,
                                      const Bound& /*bound*/) override {
    return std::make_unique<NullExecutable>(
        plan.devices[static_cast<std::size_t>(device)].steps, device);
  }

 private:
  using Count = std::atomic<std::size_t>;

  Target target_;
  std::shared_ptr<Count> allocated_;
};

}  // namespace

std::unique_ptr<Backend> open_null(Target target) {
  return std::make_unique<NullBackend>(std::move(target));
}

}  // namespace halfwatt
