// bench_ops [MODEL train|infer PRECISION BATCH THREADS|gpu [RUNS]]: where the time of a step
// goes, by op, on this machine's processors or its first GPU, where every step is waited for,
// which adds some microseconds to each: the sum of the medians over RUNS runs of every step of
// the plan, its share, and for products the rate. A training step is its micro plan: forward,
// loss and backward, without the update. Random normal data. Without words: a training of
// vit_tiny on 16 images at once, on two threads.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/cuda/cuda_backend.h"
#include "engine/infer/inference.h"
#include "engine/models/vit.h"
#include "engine/ops/op_def.h"
#include "engine/passes/precision.h"
#include "engine/train/trainer.h"
#include "workloads/op_rates.h"
#include "workloads/plan_run.h"

namespace {

using namespace halfwatt;

struct Asked {
  VitConfig model;
  bool trains;
  Precision precision;
  std::int64_t batch;
};

/// What ops of one kind and shape took.
struct Row {
  int count = 0;
  double seconds = 0, flops = 0;
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench_ops: {}\n", why);
  std::exit(2);
}

template <class T>
T taken(Result<T> result) {
  return result ? std::move(*result) : (give_up(result.error().message), std::move(*result));
}

Plan plan_of(const Asked& asked, const Target& target) {
  if (!asked.trains) {
    return taken(inference_plan({asked.model, asked.precision, {}, asked.batch}, target));
  }
  TrainRecipe recipe;
  recipe.model = asked.model;
  recipe.precision = asked.precision;
  recipe.batch = asked.batch;
  return std::move(taken(training_plans(recipe, target)).front());
}

/// Seconds of every step of the plan, by run.
std::vector<std::vector<double>> times(PlanRun& run, int runs) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> all(run.plan().devices[0].steps.size());
  for (int at = -1; at < runs; ++at) {  // the first warms up
    Clock::time_point last = Clock::now();
    const auto done = run.run([&](int, int step) {
      const Clock::time_point now = Clock::now();
      if (at >= 0) {
        all[static_cast<std::size_t>(step)].push_back(
            std::chrono::duration<double>(now - last).count());
      }
      last = now;
    });
    if (!done) {
      give_up(done.error().message);
    }
  }
  return all;
}

std::map<std::string, Row> rows_of(const Plan& plan, std::vector<std::vector<double>> all) {
  std::map<std::string, Row> rows;
  for (std::size_t step = 0; step < all.size(); ++step) {
    const int id = plan.devices[0].steps[step].node;
    const Node& node = plan.graph.node(id);
    std::string name = rate_name(plan.graph, id);
    if (node.op == Op::matmul || node.op == Op::linear) {
      name += fmt::format(" {} {}", text(node.outputs[0].shape),
                          text(input_types(plan.graph, node)[0].shape));
    }
    auto& times = all[step];
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    Row& row = rows[name];
    row.count += 1;
    row.seconds += *middle;
    row.flops += work_of(plan.graph, id).flops;
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    words = {"vit_tiny_patch16_224", "train", "fp32", "16", "2"};
  }
  if (words.size() < 5) {
    give_up("needed MODEL train|infer PRECISION BATCH THREADS|gpu [RUNS]");
  }
  const Asked asked{taken(vit_named(words[0])), words[1] == "train",
                    taken(precision_named(words[2])), std::stoi(words[3])};
  CudaOptions gpu;
  gpu.step_by_step = true;
  const auto backend =
      taken(words[4] == "gpu" ? open_cuda(gpu) : open_cpu({"cpu", std::stoi(words[4])}));
  const auto run = taken(PlanRun::open(plan_of(asked, backend->target()), *backend, 1));
  const auto rows =
      rows_of(run->plan(), times(*run, words.size() > 5 ? std::stoi(words[5]) : 10));

  double whole = 0;
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  for (const auto& [name, row] : sorted) {
    whole += row.seconds;
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  fmt::print("{:8.2f} ms\n", whole * 1e3);
  for (const auto& [name, row] : sorted) {
    fmt::print("{:8.2f} ms {:5.1f} % {:4} x {:7.1f} GFLOP/s  {}\n", row.seconds * 1e3,
               100 * row.seconds / whole, row.count, row.flops / row.seconds / 1e9, name);
  }
}
