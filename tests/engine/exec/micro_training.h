#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/exec/cpu_run.h"
#include "engine/models/vit.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/update.h"
#include "engine/tensor/keyed_random.h"

namespace halfwatt {

/// What a training of a tiny ViT follows from.
struct MicroTraining {
  VitConfig model = micro();
  std::string mode = "fp32";
  std::function<void(Precision&)> change = [](Precision&) {};  ///< of the mode's row
  std::int64_t batch = 4;
  int micro_batches = 1;
  Optimizer optimizer;
  int threads = 0;

  static VitConfig micro() {
    VitConfig config = *vit_named("vit_micro_patch4_8");
    config.classes = 3;
    return config;
  }

  /// The graphs of a step: of one micro-batch, and the update where there are several.
  std::vector<Graph> graphs() const {
    Precision precision = *precision_named(mode);
    change(precision);
    const Graph forward = *with_precision(vit(model, batch, ModelMode::train), precision, {});
    const Graph both = with_gradients(forward, precision, micro_batches);
    if (micro_batches == 1) {
      return {with_update(both, precision, optimizer)};
    }
    const Graph accumulated = with_accumulation(both, precision);
    return {accumulated, update_of(accumulated, precision, optimizer)};
  }

  std::vector<double> first_value(const StateSpec& state) const {
    Rng rng(fnv1a(state.name));
    std::vector<double> values(static_cast<std::size_t>(state.type.shape.elements()));
    for (double& value : values) {
      value = 0.1 * rng.normal() + (state.name.find("norm") != std::string::npos ? 1 : 0);
    }
    return values;
  }

  std::vector<double> pixels(std::int64_t images, int step) const {
    Rng rng(static_cast<std::uint64_t>(step) + 17);
    std::vector<double> all(
        static_cast<std::size_t>(images * model.channels * model.image * model.image));
    for (double& pixel : all) {
      pixel = rng.normal();
    }
    return all;
  }

  std::vector<double> labels(std::int64_t images, int step) const {
    std::vector<double> all;
    for (std::int64_t at = 0; at < images; ++at) {
      all.push_back(static_cast<double>((at * at + step) % model.classes));
    }
    return all;
  }
};

/// That training, on the CPU unless another device is given.
class MicroRun {
 public:
  explicit MicroRun(const MicroTraining& training)
      : MicroRun(training, opened_cpu(training.threads)) {}
  MicroRun(const MicroTraining& training, std::unique_ptr<Backend> backend)
      : training_(training), run_(std::move(backend), training.graphs()) {
    for (const StateSpec& state : vit_parameters(training.model)) {
      run_.load(state.name, tensor_of(state.type, training.first_value(state)));
    }
  }

  /// The losses of all images of a step. One of micro-batch `overflowing` has a pixel that is
  /// too large for any format.
  std::vector<double> step(int step, int overflowing = -1) {
    const std::int64_t all = training_.batch * training_.micro_batches;
    const std::vector<double> pixels = training_.pixels(all, step);
    const std::vector<double> labels = training_.labels(all, step);
    std::vector<double> losses;
    mean_ = 0;
    for (int part = 0; part < training_.micro_batches; ++part) {
      std::vector<double> images = piece(pixels, part);
      images[0] *= part == overflowing ? 1e300 : 1;
      run_.bind("images", images);
      run_.bind("labels", piece(labels, part));
      run_.bind("valid", {static_cast<double>(training_.batch)});
      run_.bind("random",
                {9, static_cast<double>(step), static_cast<double>(part * training_.batch)});
      run_.run();
      const std::vector<double> some = run_.numbers("losses");
      losses.insert(losses.end(), some.begin(), some.end());
      mean_ += run_.number("loss") / training_.micro_batches;
    }
    if (training_.micro_batches > 1) {
      run_.bind("random", {9, static_cast<double>(step), 0}, 1);
      run_.run(1);
    }
    return losses;
  }
  /// Of the last step, as its graph says.
  double mean_loss() const { return mean_; }
  bool skipped() const {
    return run_.number("skipped", training_.micro_batches > 1 ? 1 : 0) != 0;
  }
  void set_scale(double scale) {
    run_.load(std::string(kLossScale), tensor_of({DType::f32, Shape()}, {scale}));
  }
  BackendRun& run() { return run_; }

 private:
  std::vector<double> piece(const std::vector<double>& all, int part) const {
    const auto size = all.size() / static_cast<std::size_t>(training_.micro_batches);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(size) * part;
    return {begin, begin + static_cast<std::ptrdiff_t>(size)};
  }

  MicroTraining training_;
  BackendRun run_;
  double mean_ = 0;
};

/// All copies of parameters, and of each whether it is its parameter, rounded.
inline std::map<std::string, bool> copies_of(const States& states) {
  std::map<std::string, bool> all;
  for (const std::string& name : states.names()) {
    const StateSpec& spec = states.spec(name);
    if (spec.role == StateRole::copy) {
      Tensor rounded(spec.type);
      convert(states.save(spec.of).view(), rounded.view());
      all[name] = same_bits(rounded, states.save(name));
    }
  }
  return all;
}

}  // namespace halfwatt
