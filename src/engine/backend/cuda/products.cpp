#include "engine/backend/cuda/products.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/failure.h"
#include "base/remark.h"
#include "engine/backend/cuda/chosen_algorithms.h"
#include "engine/backend/cuda/cublaslt.h"
#include "engine/backend/cuda/device.h"
#include "engine/backend/cuda/kernels/elements.h"
#include "engine/plan/plan.h"

namespace halfwatt::cuda {
namespace {

/// Freed when it ends.
class Memory {
 public:
  explicit Memory(std::size_t bytes) {
    if (cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)) != cudaSuccess) {
      cudaGetLastError();
      data_ = nullptr;
    }
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "create an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream stream) const { check(cudaEventRecord(event_, stream), "record"); }
  /// Milliseconds since `begin`, once both were passed.
  float after(const Event& begin) const {
    check(cudaEventSynchronize(event_), "wait for an event");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "read a time");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Operands of a product in memory of their own, as large as the product's and several times
/// over where they are small, so that they come from memory as they would among other steps.
class TrialData {
 public:
  explicit TrialData(const ProductShape& shape)
      : sizes_{bytes(shape.a, shape.m * shape.k), bytes(shape.b, shape.n * shape.k),
               bytes(shape.result, shape.has_bias ? shape.n : 0),
               bytes(shape.result, shape.m * shape.n)},
        copies_(std::clamp<std::size_t>(kBeyondCaches / each(), 1, kMostCopies)),
        memory_(copies_ * each()),
        workspace_(Products::kWorkspace) {}

  bool is_there() const { return memory_.data() != nullptr && workspace_.data() != nullptr; }
  void fill(Stream stream, const ProductShape& shape) const {
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      const ProductOperands of = operands(copy);
      const auto set = [&](const std::byte* data, DType dtype, Index count) {
        if (count > 0) {
          fill_with_normals(stream, {const_cast<std::byte*>(data), dtype}, copy, count);
        }
      };
      set(of.a, shape.a, shape.m * shape.k);
      set(of.b, shape.b, shape.n * shape.k);
      set(of.bias, shape.result, shape.has_bias ? shape.n : 0);
    }
  }
  ProductOperands operands(std::size_t turn) const {
    std::byte* const a = memory_.data() + turn % copies_ * each();
    std::byte* const b = a + sizes_[0];
    std::byte* const bias = b + sizes_[1];
    return {a, b, bias, bias + sizes_[2], workspace_.data()};
  }
  std::size_t copies() const { return copies_; }

 private:
  static constexpr std::size_t kBeyondCaches = std::size_t{256} << 20;
  static constexpr std::size_t kMostCopies = 16;

  static std::size_t bytes(DType dtype, Index count) {
    return aligned(static_cast<std::size_t>(count) * bytes_of(dtype));
  }
  std::size_t each() const {
    return std::max<std::size_t>(sizes_[0] + sizes_[1] + sizes_[2] + sizes_[3], 1);
  }

  std::size_t sizes_[4];
  std::size_t copies_;
  Memory memory_, workspace_;
};

class CublasLt final : public Products {
 public:
  CublasLt(const CublasLtLibrary& library, const ProductChoice& choice)
      : library_(library),
        name_(name_of(library)),
        tunes_(choice.tunes),
        chosen_(fmt::format("{}, {}", name_, choice.card), choice.file) {
    check(library_.create(&handle_), "create");
  }
  ~CublasLt() override {
    prepared_.clear();
    library_.destroy(handle_);
  }
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  const std::string& name() const override { return name_; }

  // Trial data of fp8 would have to be scaled: its first choice is taken.
  void prepare(const ProductShape& shape) override {
    ready(shape, tunes_ && bytes_of(shape.a) > 1);
  }

  void run(Stream stream, const ProductShape& shape, const ProductOperands& operands) override {
    const Prepared& of = ready(shape, false);
    of.description->enqueue(handle_, of.algorithm, operands, stream);
  }

 private:
  struct Prepared {
    std::unique_ptr<Description> description;
    cublasLtMatmulAlgo_t algorithm;
  };

  // 13.0.2 is 130002, 12.4.5 is 120405.
  static std::string name_of(const CublasLtLibrary& library) {
    const std::size_t version = library.version();
    return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100,
                       version % 100);
  }

  static std::string text(const ProductShape& shape) {
    return fmt::format("{}{} {}{} {}x{}x{} {} {} to {}", shape.a_transposed ? "T" : "N",
                       shape.b_transposed ? "T" : "N",
                       shape.is_tf32    ? "tf32"
                       : shape.sums_f16 ? "f16-sums"
                                        : "own",
                       shape.has_bias ? " bias" : "", shape.m, shape.n, shape.k,
                       halfwatt::text(shape.a), halfwatt::text(shape.b),
                       halfwatt::text(shape.result));
  }

  const Prepared& ready(const ProductShape& shape, bool tunes) {
    const auto known = prepared_.find(shape);
    if (known != prepared_.end()) {
      return known->second;
    }
    Prepared of{std::make_unique<Description>(library_, shape), {}};
    of.algorithm = algorithm_for(shape, *of.description, tunes);
    return prepared_.emplace(shape, std::move(of)).first->second;
  }

  cublasLtMatmulAlgo_t algorithm_for(const ProductShape& shape,
                                     const Description& description,
                                     bool tunes) {
    constexpr int kMostTried = 24;
    const std::string product = text(shape);
    if (tunes) {
      const auto chosen = chosen_.find(product);
      if (chosen && description.is_served_by(handle_, *chosen)) {
        return *chosen;
      }
    }
    std::vector<cublasLtMatmulAlgo_t> all =
        description.algorithms(handle_, tunes ? kMostTried : 1);
    if (all.empty()) {
      throw Failure({ErrorKind::device, fmt::format("cuBLASLt: no algorithm for {}", product)});
    }
    if (all.size() > 1) {
      const TrialData data(shape);
      if (!data.is_there()) {
        remark(fmt::format("{}: too little memory to time algorithms, the first is taken",
                           product));
      } else {
        all.front() = fastest(shape, description, all, data);
        chosen_.put(product, all.front());
      }
    }
    return all.front();
  }

  // All of them once, the best few again in turns: what heats the card up is there for all.
  cublasLtMatmulAlgo_t fastest(const ProductShape& shape,
                               const Description& description,
                               const std::vector<cublasLtMatmulAlgo_t>& all,
                               const TrialData& data) const {
    constexpr std::size_t kBest = 4;
    constexpr int kRounds = 5;
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
    const std::shared_ptr<void> owner(stream, [](cudaStream_t of) { cudaStreamDestroy(of); });
    data.fill(stream, shape);
    std::vector<std::pair<float, std::size_t>> times;
    for (std::size_t at = 0; at < all.size(); ++at) {
      if (const auto time = time_of(description, all[at], data, stream)) {
        times.emplace_back(*time, at);
      }
    }
    if (times.empty()) {
      return all.front();
    }
    std::sort(times.begin(), times.end());
    times.resize(std::min(times.size(), kBest));
    for (int round = 0; round < kRounds; ++round) {
      for (auto& [best, at] : times) {
        best = std::min(best, time_of(description, all[at], data, stream).value_or(best));
      }
    }
    return all[std::min_element(times.begin(), times.end())->second];
  }

  /// Milliseconds of one product, on average; nullopt where the library refuses it after all.
  std::optional<float> time_of(const Description& description,
                               const cublasLtMatmulAlgo_t& algorithm,
                               const TrialData& data,
                               cudaStream_t stream) const {
    // All copies in turn, so that small ones do not come from the caches.
    const std::size_t times = std::max<std::size_t>(data.copies(), 4);
    try {
      const Event begin;
      const Event end;
      description.enqueue(handle_, algorithm, data.operands(0), stream);  // warms up
      begin.record(stream);
      for (std::size_t turn = 1; turn <= times; ++turn) {
        description.enqueue(handle_, algorithm, data.operands(turn), stream);
      }
      end.record(stream);
      return end.after(begin) / static_cast<float>(times);
    } catch (const Failure&) {
      cudaGetLastError();
      return std::nullopt;
    }
  }

  CublasLtLibrary library_;
  cublasLtHandle_t handle_ = nullptr;
  std::string name_;
  bool tunes_;
  ChosenAlgorithms chosen_;
  std::map<ProductShape, Prepared> prepared_;
};

}  // namespace

Result<std::unique_ptr<Products>> Products::open(const ProductChoice& choice) {
  const auto library = load_cublaslt();
  if (!library) {
    return library.error();
  }
  try {
    return Result<std::unique_ptr<Products>>(std::make_unique<CublasLt>(*library, choice));
  } catch (const Failure& failure) {
    return failure.error();
  }
}

}  // namespace halfwatt::cuda
