#include "engine/backend/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/failure.h"
#include "engine/backend/cpu/bindings.h"
#include "engine/backend/cpu/convolution_library.h"
#include "engine/backend/cpu/kernels/available_threads.h"
#include "engine/backend/cpu/product_library.h"

namespace halfwatt {
namespace {

using cpu::Call;
using cpu::Machine;

std::vector<TensorView> views(const std::vector<TensorType>& types) {
  std::vector<TensorView> all;
  all.reserve(types.size());
  for (const TensorType& type : types) {
    all.push_back({type, nullptr});
  }
  return all;
}

bool is_computed_as_stored(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16 || !is_float(dtype);
}

Support support(const Graph& graph, int id) {
  const Node& node = graph.node(id);
  if (node.op == Op::input || node.op == Op::read || node.op == Op::reshape) {
    return {};
  }
  const cpu::Binding* row = cpu::binding(node.op);
  if (!row) {
    return {Support::Kind::refused, "no kernel for this op"};
  }
  const std::vector<TensorType> inputs = input_types(graph, node);
  if (row->refuses) {
    if (std::string reason = row->refuses(node, inputs); !reason.empty()) {
      return {Support::Kind::refused, std::move(reason)};
    }
  }
  bool native = !node.attributes.has("math_a");
  for (const auto* types : {&inputs, &node.outputs}) {
    for (const TensorType& type : *types) {
      native = native && is_computed_as_stored(type.dtype);
    }
  }
  return {native ? Support::Kind::native : Support::Kind::emulated, {}};
}

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const Plan& plan, int device, const Bound& bound, const Machine& machine)
      : steps_(&plan.devices[static_cast<std::size_t>(device)].steps),
        device_(device),
        machine_(machine) {
    for (const Step& step : *steps_) {
      const Node& node = plan.graph.node(step.node);
      Bindings call{&node,
                    cpu::binding(node.op),
                    inputs(plan, node, step, bound),
                    {},
                    address(step.workspace, bound)};
      for (const Place& place : step.outputs) {
        call.outputs.push_back({place.type, address(place, bound)});
      }
      calls_.push_back(std::move(call));
    }
  }

  void run(StepProgress& progress) override {
    for (std::size_t at = 0; at < calls_.size(); ++at) {
      for (const Wait& wait : (*steps_)[at].waits) {
        progress.wait_for(wait);
      }
      const Bindings& bound = calls_[at];
      Call call(*bound.node, bound.inputs, bound.outputs, bound.workspace, machine_, false);
      bound.row->run(call);
      progress.done(device_, static_cast<int>(at));
    }
  }

 private:
  struct Bindings {
    const Node* node;
    const cpu::Binding* row;
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    std::byte* workspace;
  };

  // A transfer's input lies in the arena of another device, which is memory like any other.
  static std::vector<TensorView> inputs(const Plan& plan,
                                        const Node& node,
                                        const Step& step,
                                        const Bound& bound) {
    std::vector<TensorView> all;
    for (std::size_t at = 0; at < step.inputs.size(); ++at) {
      const Place& place = step.inputs[at];
      std::byte* data = address(place, bound);
      if (node.op == Op::transfer && place.space == Place::Space::arena) {
        const int from = plan.graph.node(node.inputs[at].node).device;
        data = bound.other_arenas[static_cast<std::size_t>(from)] + place.offset;
      }
      all.push_back({place.type, data});
    }
    return all;
  }

  const std::vector<Step>* steps_;
  int device_;
  Machine machine_;
  std::vector<Bindings> calls_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(const CpuOptions& options, int threads, cpu::Isa isa)
      : workers_(threads),
        products_(cpu::open_product_library()),
        convolutions_(cpu::open_convolution_library()),
        machine_{&workers_, isa, products_.get(), convolutions_.get()},
        allocated_(std::make_shared<Count>(0)) {
    target_.id.kind = DeviceId::Kind::cpu;
    target_.name = options.name;
    target_.memory = Bytes(static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                           static_cast<double>(::sysconf(_SC_PAGESIZE)));
    target_.support = support;
    target_.arithmetic = {{"isa", std::string(cpu::text(isa))},
                          {"products", cpu::product_library_name()},
                          {"threads", fmt::format("{}", threads)}};
    target_.panels = [this](DType dtype, const Shape& weights) {
      return panels(dtype, weights);
    };
    target_.workspace = [this](const Graph& graph, int id) { return workspace(graph, id); };
  }

  const Target& target() const override { return target_; }

  Buffer allocate(std::size_t bytes) override {
    auto* const memory = static_cast<std::byte*>(::operator new(
        std::max<std::size_t>(bytes, 1), std::align_val_t(kAlignment), std::nothrow));
    if (!memory) {
      throw Failure({ErrorKind::device,
                     fmt::format("{}: no {} bytes of memory left", target_.name, bytes)});
    }
    *allocated_ += bytes;
    const auto free = [bytes, count = allocated_](std::byte* data) {
      ::operator delete(data, std::align_val_t(kAlignment));
      *count -= bytes;
    };
    return {std::shared_ptr<std::byte>(memory, free), bytes};
  }

  std::size_t allocated() const override { return *allocated_; }

  void upload(std::byte* to, std::span<const std::byte> from) override {
    std::copy(from.begin(), from.end(), to);
  }
  void download(std::span<std::byte> to, const std::byte* from) override {
    std::copy_n(from, to.size(), to.data());
  }

  std::unique_ptr<Executable> compile(const Plan& plan,
                                      int device,
                                      const Bound& bound) override {
    return std::make_unique<CpuExecutable>(plan, device, bound, machine_);
  }

 private:
  using Count = std::atomic<std::size_t>;

  // The library's, where it has some: with AMX it multiplies bf16 many times as fast as the
  // kernels do.
  std::optional<Panels> panels(DType dtype, const Shape& weights) const {
    const auto library = products_ ? products_->panels(dtype, weights[0], weights[1])
                                   : std::optional<cpu::PanelShape>();
    if (!library && dtype != DType::f32 && dtype != DType::bf16) {
      return std::nullopt;
    }
    const cpu::PanelShape own = dtype == DType::f32
                                    ? cpu::kernels<float>(machine_.isa).panels
                                    : cpu::kernels<cpu::Bf16>(machine_.isa).panels;
    const cpu::PanelShape shape = library.value_or(own);
    return weights[0] % shape.columns == 0 && weights[1] % shape.steps == 0
               ? std::optional(Panels{shape.columns, shape.steps})
               : std::nullopt;
  }

  std::size_t workspace(const Graph& graph, int id) const {
    const Node& node = graph.node(id);
    const cpu::Binding* row = cpu::binding(node.op);
    if (!row) {
      return 0;
    }
    const std::vector<TensorView> inputs = views(input_types(graph, node));
    const std::vector<TensorView> outputs = views(node.outputs);
    Call call(node, inputs, outputs, nullptr, machine_, true);
    row->run(call);
    return call.scratch_used();
  }

  cpu::Workers workers_;
  std::unique_ptr<cpu::ProductLibrary> products_;
  std::unique_ptr<cpu::ConvolutionLibrary> convolutions_;
  Machine machine_;
  std::shared_ptr<Count> allocated_;
  Target target_;
};

}  // namespace

Result<std::unique_ptr<Backend>> open_cpu(const CpuOptions& options) {
  const auto isa = cpu::chosen_isa(std::getenv("HALFWATT_ISA"));
  if (!isa) {
    return isa.error();
  }
  const int threads = options.threads > 0 ? options.threads : cpu::available_threads();
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(options, threads, *isa));
}

}  // namespace halfwatt
