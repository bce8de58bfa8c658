#include "engine/backend/cuda/executable.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/failure.h"
#include "engine/backend/cuda/bindings.h"
#include "engine/backend/cuda/device.h"

namespace halfwatt::cuda {
namespace {

std::vector<TensorView> views(const std::vector<Place>& places, const Bound& bound) {
  std::vector<TensorView> all;
  for (const Place& place : places) {
    all.push_back({place.type, address(place, bound)});
  }
  return all;
}

void do_step(const Node& node,
             const Step& step,
             const Bound& bound,
             const Machine& machine,
             Call::Purpose purpose) {
  const std::vector<TensorView> inputs = views(step.inputs, bound);
  const std::vector<TensorView> outputs = views(step.outputs, bound);
  Call call(node, inputs, outputs, address(step.workspace, bound), machine, purpose);
  try {
    binding(node.op)->run(call);
  } catch (const Failure& failure) {
    throw Failure(
        {failure.error().kind, fmt::format("{}: {}", node.name, failure.error().message)});
  }
}

void prepare(const Plan& plan,
             const std::vector<Step>& steps,
             const Bound& bound,
             const Machine& machine) {
  for (const Step& step : steps) {
    do_step(plan.graph.node(step.node), step, bound, machine, Call::Purpose::prepare);
  }
}

class CapturedGraph final : public Executable {
 public:
  CapturedGraph(const Plan& plan, int device, const Bound& bound, const Machine& machine)
      : device_(device), gpu_(machine.device), stream_(machine.stream) {
    const std::vector<Step>& steps = plan.devices[static_cast<std::size_t>(device)].steps;
    steps_ = static_cast<int>(steps.size());
    prepare(plan, steps, bound, machine);
    // Relaxed: a library may still load code of its own while this thread captures.
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "capture");
    cudaGraph_t graph = nullptr;
    try {
      for (const Step& step : steps) {
        do_step(plan.graph.node(step.node), step, bound, machine, Call::Purpose::enqueue);
      }
    } catch (...) {
      cudaStreamEndCapture(stream_, &graph);
      cudaGraphDestroy(graph);
      cudaGetLastError();  // the capture's own end is no news
      throw;
    }
    check(cudaStreamEndCapture(stream_, &graph), "capture");
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "instantiate a graph");
    const cudaError_t uploaded = cudaGraphUpload(executable_, stream_);
    if (uploaded != cudaSuccess) {
      cudaGraphExecDestroy(executable_);  // no destructor will
    }
    check(uploaded, "upload a graph");
  }
  ~CapturedGraph() override { cudaGraphExecDestroy(executable_); }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void run(StepProgress& progress) override {
    check(cudaSetDevice(gpu_), "choose the device");
    launch();
    check(cudaStreamSynchronize(stream_), "run");
    for (int step = 0; step < steps_; ++step) {
      progress.done(device_, step);
    }
  }
  void start(StepProgress& /*progress*/) override {
    check(cudaSetDevice(gpu_), "choose the device");
    launch();
  }

 private:
  void launch() { check(cudaGraphLaunch(executable_, stream_), "launch"); }

  int device_;  ///< of the plan
  int gpu_;
  int steps_ = 0;
  Stream stream_;
  cudaGraphExec_t executable_ = nullptr;
};

class StepByStep final : public Executable {
 public:
  StepByStep(const Plan& plan, int device, Bound bound, const Machine& machine)
      : plan_(&plan), device_(device), bound_(std::move(bound)), machine_(machine) {
    prepare(plan, plan.devices[static_cast<std::size_t>(device)].steps, bound_, machine);
  }

  void run(StepProgress& progress) override {
    check(cudaSetDevice(machine_.device), "choose the device");
    const std::vector<Step>& steps = plan_->devices[static_cast<std::size_t>(device_)].steps;
    for (std::size_t at = 0; at < steps.size(); ++at) {
      do_step(plan_->graph.node(steps[at].node), steps[at], bound_, machine_,
              Call::Purpose::enqueue);
      check(cudaStreamSynchronize(machine_.stream), "run a step");
      progress.done(device_, static_cast<int>(at));
    }
  }

 private:
  const Plan* plan_;
  int device_;  ///< of the plan
  Bound bound_;
  Machine machine_;
};

}  // namespace

std::unique_ptr<Executable> capture(const Plan& plan,
                                    int device,
                                    const Bound& bound,
                                    const Machine& machine) {
  return std::make_unique<CapturedGraph>(plan, device, bound, machine);
}

std::unique_ptr<Executable> step_by_step(const Plan& plan,
                                         int device,
                                         const Bound& bound,
                                         const Machine& machine) {
  return std::make_unique<StepByStep>(plan, device, bound, machine);
}

}  // namespace halfwatt::cuda
