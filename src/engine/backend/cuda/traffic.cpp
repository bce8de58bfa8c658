#include "engine/backend/cuda/traffic.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/failure.h"
#include "engine/backend/cuda/device.h"
#include "engine/plan/summary_text.h"

namespace halfwatt::cuda {
namespace {

/// Memory of the host that the device copies to and from without the host's help.
class Pinned {
 public:
  explicit Pinned(std::size_t bytes) {
    void* memory = nullptr;
    const cudaError_t found =
        cudaHostAlloc(&memory, std::max<std::size_t>(bytes, 1), cudaHostAllocDefault);
    if (found != cudaSuccess) {
      cudaGetLastError();  // it is told here, and is no error of the next call
      throw Failure({ErrorKind::device,
                     fmt::format("no {} of the host's memory left that the device sees ({})",
                                 bytes_text(Bytes(static_cast<double>(bytes))),
                                 cudaGetErrorName(found))});
    }
    data_ = static_cast<std::byte*>(memory);
  }
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

/// A place in a stream, which the host or another stream may want to be reached.
class Event {
 public:
  Event() {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "create an event");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream stream) { check(cudaEventRecord(event_, stream), "record an event"); }
  /// What comes to `stream` now waits for it; one never recorded counts as reached.
  void hold(Stream stream) const { check(cudaStreamWaitEvent(stream, event_), "wait"); }
  bool is_reached() const {
    const cudaError_t found = cudaEventQuery(event_);
    if (found == cudaErrorNotReady) {
      cudaGetLastError();  // it is no error of the next call
      return false;
    }
    check(found, "run");
    return true;
  }
  /// Asks now and then: the driver's own wait keeps a processor busy, or the device waiting.
  void wait() const {
    constexpr auto kPause = std::chrono::microseconds(20);
    while (!is_reached()) {
      std::this_thread::sleep_for(kPause);
    }
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// A stream for copies, beside the one that computes.
class CopyStream {
 public:
  CopyStream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  ~CopyStream() { cudaStreamDestroy(stream_); }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;
  operator Stream() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaFeed final : public Feed {
 public:
  CudaFeed(const Machine& machine, std::byte* to, Buffer beside, std::size_t bytes)
      : device_(machine.device),
        computes_(machine.stream),
        to_(to),
        beside_(std::move(beside)),
        bytes_(bytes),
        host_(kValues * bytes) {}
  // What is on its way reads memory that goes with this.
  ~CudaFeed() override {
    cudaSetDevice(device_);
    cudaStreamSynchronize(copies_);
  }

  std::span<std::byte> next() override {
    check(cudaSetDevice(device_), "choose the device");
    crossed_[at_].wait();
    return {host_.data() + at_ * bytes_, bytes_};
  }

  void send() override {
    check(cudaSetDevice(device_), "choose the device");
    moved_.hold(copies_);
    check(cudaMemcpyAsync(beside_.data(), host_.data() + at_ * bytes_, bytes_,
                          cudaMemcpyHostToDevice, copies_),
          "copy to the device");
    crossed_[at_].record(copies_);
    crossed_[at_].hold(computes_);
    check(cudaMemcpyAsync(to_, beside_.data(), bytes_, cudaMemcpyDeviceToDevice, computes_),
          "move an input");
    moved_.record(computes_);
    at_ = (at_ + 1) % kValues;
  }

 private:
  static constexpr std::size_t kValues = 2;

  int device_;
  Stream computes_;
  CopyStream copies_;
  std::byte* to_;
  Buffer beside_;
  std::size_t bytes_;
  Pinned host_;
  std::array<Event, kValues> crossed_;  ///< by value: the host may write it again
  Event moved_;                         ///< `beside` may be written again
  std::size_t at_ = 0;
};

class CudaSnapshots final : public Snapshots {
 public:
  CudaSnapshots(const Machine& machine, const std::byte* from, std::size_t bytes)
      : device_(machine.device),
        stream_(machine.stream),
        from_(from),
        bytes_(bytes),
        ring_(kMost * bytes) {}
  ~CudaSnapshots() override {
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
  }

  void take() override {
    HALFWATT_CHECK(taken_ - dropped_ < kMost, "room for one more");
    check(cudaSetDevice(device_), "choose the device");
    check(cudaMemcpyAsync(slot(taken_), from_, bytes_, cudaMemcpyDeviceToHost, stream_),
          "copy from the device");
    there_[taken_ % kMost].record(stream_);
    ++taken_;
  }
  bool is_there() override {
    check(cudaSetDevice(device_), "choose the device");
    return there_[dropped_ % kMost].is_reached();
  }
  std::span<const std::byte> oldest() override {
    HALFWATT_CHECK(dropped_ < taken_, "one that was asked for");
    check(cudaSetDevice(device_), "choose the device");
    there_[dropped_ % kMost].wait();
    return {slot(dropped_), bytes_};
  }
  void drop_oldest() override { ++dropped_; }

 private:
  std::byte* slot(std::size_t number) const { return ring_.data() + number % kMost * bytes_; }

  int device_;
  Stream stream_;
  const std::byte* from_;
  std::size_t bytes_;
  Pinned ring_;
  std::array<Event, kMost> there_;
  std::size_t taken_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace

std::unique_ptr<Feed> feed(const Machine& machine,
                           std::byte* to,
                           Buffer beside,
                           std::size_t bytes) {
  return std::make_unique<CudaFeed>(machine, to, std::move(beside), bytes);
}

std::unique_ptr<Snapshots> snapshots(const Machine& machine,
                                     const std::byte* from,
                                     std::size_t bytes) {
  return std::make_unique<CudaSnapshots>(machine, from, bytes);
}

}  // namespace halfwatt::cuda
