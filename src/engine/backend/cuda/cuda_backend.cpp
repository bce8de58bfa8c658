#include "engine/backend/cuda/cuda_backend.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/failure.h"
#include "engine/backend/cuda/bindings.h"
#include "engine/backend/cuda/device.h"
#include "engine/backend/cuda/executable.h"
#include "engine/backend/cuda/kernels/probe.h"
#include "engine/backend/cuda/traffic.h"
#include "engine/plan/summary_text.h"

namespace halfwatt {
namespace {

using cuda::Call;
using cuda::check;
using cuda::Machine;

Error device_error(std::string message) { return {ErrorKind::device, std::move(message)}; }

/// What the runtime calls a device, as it is asked for.
Result<int> number_of(const CudaOptions& options, int count) {
  int device = options.device;
  if (!options.pci.empty()) {
    if (cudaDeviceGetByPCIBusId(&device, options.pci.c_str()) != cudaSuccess) {
      cudaGetLastError();
      return device_error(
          fmt::format("the card at {} is hidden from CUDA: CUDA_VISIBLE_DEVICES leaves it out",
                      options.pci));
    }
  } else if (device < 0 || device >= count) {
    return device_error(fmt::format("gpu:{}: this machine has {} GPU{}, numbered from 0",
                                    device, count, count == 1 ? "" : "s"));
  }
  return device;
}

/// A device that is there and runs this program's code.
struct Usable {
  int device;
  cudaDeviceProp facts;
};
Result<Usable> usable_device(const CudaOptions& options) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found == cudaErrorInsufficientDriver) {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    return device_error(
        fmt::format("the NVIDIA driver is missing, or too old for CUDA {}.{}, which this "
                    "program was built with",
                    runtime / 1000, runtime / 10 % 100));
  }
  if (found != cudaSuccess || count == 0) {
    return device_error(fmt::format("no NVIDIA GPU: {}", found == cudaSuccess
                                                             ? "the driver shows none"
                                                             : cuda::meaning(found)));
  }
  const auto device = number_of(options, count);
  if (!device) {
    return device.error();
  }
  cudaDeviceProp facts{};
  check(cudaGetDeviceProperties(&facts, *device), "ask for the device's facts");
  const cudaError_t runs = cuda::run_nothing(*device);
  if (runs == cudaErrorNoKernelImageForDevice || runs == cudaErrorInvalidDeviceFunction ||
      runs == cudaErrorUnsupportedPtxVersion) {
    return device_error(
        fmt::format("{} has compute capability {}.{}, for which this program has "
                    "no code; build it with -DCMAKE_CUDA_ARCHITECTURES={}{}",
                    facts.name, facts.major, facts.minor, facts.major, facts.minor));
  }
  check(runs, facts.name);
  return Usable{*device, facts};
}

std::vector<TensorView> views(const std::vector<TensorType>& types) {
  std::vector<TensorView> all;
  for (const TensorType& type : types) {
    all.push_back({type, nullptr});
  }
  return all;
}

Support support(const Graph& graph, int id, bool has_fp8) {
  const Node& node = graph.node(id);
  if (node.op == Op::input || node.op == Op::read || node.op == Op::reshape) {
    return {};
  }
  std::string reason = cuda::why_refused(node, input_types(graph, node), has_fp8);
  return reason.empty() ? Support{} : Support{Support::Kind::refused, std::move(reason)};
}

// Whichever thread calls, it is this device that is meant: the one at hand is a thread's own.
class CudaBackend final : public Backend {
 public:
  CudaBackend(int device,
              const cudaDeviceProp& facts,
              std::unique_ptr<cuda::Products> products,
              const CudaOptions& options)
      : device_(device),
        step_by_step_(options.step_by_step),
        products_(std::move(products)),
        allocated_(std::make_shared<Count>(0)) {
    check(cudaSetDevice(device_), "choose the device");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
    target_.id = {DeviceId::Kind::gpu_pci, pci_text(static_cast<unsigned>(facts.pciDomainID),
                                                    static_cast<unsigned>(facts.pciBusID),
                                                    static_cast<unsigned>(facts.pciDeviceID))};
    target_.name = facts.name;
    target_.memory = Bytes(static_cast<double>(facts.totalGlobalMem));
    target_.feeds_ahead = true;
    // Of Ada and Hopper on.
    const bool has_fp8 = facts.major > 8 || (facts.major == 8 && facts.minor >= 9);
    target_.support = [has_fp8](const Graph& graph, int id) {
      return support(graph, id, has_fp8);
    };
    target_.arithmetic = {{"gpu", facts.name},
                          {"products", products_->name()},
                          {"algorithms", options.deterministic ? "the first" : "timed"}};
    target_.workspace = [this](const Graph& graph, int id) { return workspace(graph, id); };
  }
  ~CudaBackend() override { cudaStreamDestroy(stream_); }
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  const Target& target() const override { return target_; }

  Buffer allocate(std::size_t bytes) override {
    void* memory = nullptr;
    check(cudaSetDevice(device_), "choose the device");
    const cudaError_t found = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
    if (found != cudaSuccess) {
      cudaGetLastError();  // it is told here, and is no error of the next call
      throw Failure(no_memory(bytes, found));
    }
    *allocated_ += bytes;
    const auto free = [bytes, count = allocated_](std::byte* data) {
      cudaFree(data);
      *count -= bytes;
    };
    return {std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), free), bytes};
  }

  std::size_t allocated() const override { return *allocated_; }

  void upload(std::byte* to, std::span<const std::byte> from) override {
    check(cudaSetDevice(device_), "choose the device");
    check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream_),
          "copy to the device");
    check(cudaStreamSynchronize(stream_), "copy to the device");
  }
  void download(std::span<std::byte> to, const std::byte* from) override {
    check(cudaSetDevice(device_), "choose the device");
    check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream_),
          "copy from the device");
    check(cudaStreamSynchronize(stream_), "copy from the device");
  }

  std::unique_ptr<Feed> feed(std::byte* to, std::size_t bytes) override {
    return cuda::feed(machine(), to, allocate(aligned(bytes)), bytes);
  }
  std::unique_ptr<Snapshots> snapshots(const std::byte* from, std::size_t bytes) override {
    check(cudaSetDevice(device_), "choose the device");
    return cuda::snapshots(machine(), from, bytes);
  }

  std::unique_ptr<Executable> compile(const Plan& plan,
                                      int device,
                                      const Bound& bound) override {
    check(cudaSetDevice(device_), "choose the device");
    return step_by_step_ ? cuda::step_by_step(plan, device, bound, machine())
                         : cuda::capture(plan, device, bound, machine());
  }

 private:
  using Count = std::atomic<std::size_t>;

  // Who has the rest is what a user has to find out.
  Error no_memory(std::size_t bytes, cudaError_t found) const {
    const auto said = [](std::size_t count) {
      return bytes_text(Bytes(static_cast<double>(count)));
    };
    std::size_t free = 0;
    std::size_t all = 0;
    if (found != cudaErrorMemoryAllocation || cudaMemGetInfo(&free, &all) != cudaSuccess) {
      return device_error(fmt::format("{}: no {} of memory left: {}", target_.name, said(bytes),
                                      cuda::meaning(found)));
    }
    return device_error(fmt::format(
        "{}: no {} of memory left: {} of {} are free, {} this program holds; what others hold "
        "nvidia-smi shows",
        target_.name, said(bytes), said(free), said(all), said(*allocated_)));
  }

  Machine machine() const { return {device_, stream_, products_.get()}; }

  std::size_t workspace(const Graph& graph, int id) const {
    const Node& node = graph.node(id);
    const cuda::Binding* const row = cuda::binding(node.op);
    if (row == nullptr || target_.support(graph, id).kind == Support::Kind::refused) {
      return 0;
    }
    const std::vector<TensorView> inputs = views(input_types(graph, node));
    const std::vector<TensorView> outputs = views(node.outputs);
    Call call(node, inputs, outputs, nullptr, machine(), Call::Purpose::count);
    row->run(call);
    return call.scratch_used();
  }

  int device_;
  bool step_by_step_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<cuda::Products> products_;
  Target target_;
  std::shared_ptr<Count> allocated_;
};

}  // namespace

Result<std::unique_ptr<Backend>> open_cuda(const CudaOptions& options) {
  try {
    const auto usable = usable_device(options);
    if (!usable) {
      return usable.error();
    }
    check(cudaSetDevice(usable->device), "choose the device");
    auto products =
        cuda::Products::open({!options.deterministic, usable->facts.name, options.choices});
    if (!products) {
      return products.error();
    }
    return Result<std::unique_ptr<Backend>>(std::make_unique<CudaBackend>(
        usable->device, usable->facts, std::move(*products), options));
  } catch (const Failure& failure) {
    return failure.error();
  }
}

std::string why_no_cuda() {
  const auto opened = open_cuda();
  return opened ? "" : opened.error().message;
}

}  // namespace halfwatt
