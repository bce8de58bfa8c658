#include "cli/calibrate.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <utility>

#include "cli/compute_device.h"
#include "cli/infer_input.h"
#include "cli/model_flags.h"
#include "cli/output.h"
#include "engine/formats/quoted.h"
#include "engine/formats/sha256.h"
#include "engine/infer/calibration.h"
#include "engine/infer/inference.h"
#include "engine/models/weights.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

constexpr double kAllBatches = 1e9;

/// What was asked for.
struct Request {
  InferRecipe recipe;
  std::string weights;
  ImageSource source;
  std::int64_t most_images = 0;
  std::string out;
  DeviceId device;
  bool deterministic = false;
  int threads = 0;
};

Result<std::string> file_asked(const Invocation& invocation, std::string_view flag) {
  auto path = invocation.get(flag);
  return path ? Result<std::string>(std::move(*path))
              : bad_input(fmt::format("calibrate: {} FILE is missing", flag));
}

Result<Request> read_request(const Invocation& invocation) {
  auto model = model_asked(invocation);
  if (!model) {
    return model.error();
  }
  auto weights = file_asked(invocation, "--weights");
  auto out = file_asked(invocation, "--out");
  if (!weights || !out) {
    return !weights ? weights.error() : out.error();
  }
  auto source = image_source_asked(invocation, "calibrate");
  if (!source) {
    return source.error();
  }
  auto device = compute_device_asked(invocation);
  if (!device) {
    return device.error();
  }
  const auto batch = invocation.whole("--batch", 8, 1, 1'000'000);
  const auto batches = invocation.whole("--batches", kAllBatches, 1, kAllBatches);
  const auto threads = invocation.whole("--threads", 0, 1, 1024);
  for (const auto* each : {&batch, &batches, &threads}) {
    if (!*each) {
      return each->error();
    }
  }
  Request request;
  request.recipe.model = std::move(*model);
  request.recipe.precision = *precision_named("fp8");
  request.recipe.batch = static_cast<std::int64_t>(*batch);
  request.recipe.calibrates = true;
  request.recipe.normalisation = normalisation_left(*source, request.recipe.model);
  request.weights = std::move(*weights);
  request.source = std::move(*source);
  request.most_images = static_cast<std::int64_t>(*batch * *batches);
  request.out = std::move(*out);
  request.device = std::move(*device);
  request.deterministic = invocation.has("--deterministic");
  request.threads = static_cast<int>(*threads);
  return request;
}

Error dead(const std::string& why) {
  return Error{ErrorKind::workload,
               fmt::format("dead: {}; no scales are written, `halfwatt inspect --values` tells "
                           "whether the weights are finite",
                           why)};
}

bool is_finite(const Tensor& logits) {
  Tensor wide(TensorType{DType::f64, logits.shape()});
  convert(logits.view(), wide.view());
  const auto all = wide.as<double>();
  return std::all_of(all.begin(), all.end(), [](double each) { return std::isfinite(each); });
}

// A batch at a time: a folder may hold more pictures than memory.
Result<void> look_at_all(InferInput& input, Inference& inference, std::int64_t batch) {
  while (const auto part = input.next(batch)) {
    const auto logits = inference.logits(part->images.view());
    if (!logits) {
      return logits.error();
    }
    if (!is_finite(*logits)) {
      return dead(
          fmt::format("logits of {} are not finite",
                      part->names.size() == 1
                          ? shown(part->names.front())
                          : fmt::format("images from {} on", shown(part->names.front()))));
    }
  }
  return input.tell();
}

Result<void> write(const Request& request, const States& states, std::int64_t images) {
  const auto sha256 = sha256_of(request.weights);
  if (!sha256) {
    return sha256.error();
  }
  Calibration seen;
  seen.model = request.recipe.model.name;
  seen.weights = std::filesystem::path(request.weights).filename().string();
  seen.sha256 = *sha256;
  seen.images = images;
  seen.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  seen.amax = largest_magnitudes(states);
  for (const auto& [operand, amax] : seen.amax) {
    if (!std::isfinite(amax)) {
      return dead(fmt::format("the largest magnitude of {} is {}", operand, amax));
    }
  }
  if (const auto written = write_calibration(request.out, seen); !written) {
    return written.error();
  }
  return print(fmt::format("{}: scales of {} operands of {}, from {} image{}\n",
                           shown(request.out), seen.amax.size(), seen.model, images,
                           images == 1 ? "" : "s"));
}

Result<void> run(const Invocation& invocation) {
  const auto request = read_request(invocation);
  if (!request) {
    return request.error();
  }
  const auto backend = open_backend(request->device, request->threads, request->deterministic);
  if (!backend) {
    return backend.error();
  }
  auto input = InferInput::open(request->source, request->recipe.model, (*backend)->target());
  if (!input) {
    return input.error();
  }
  input->keep(request->most_images);
  const auto inference = Inference::open(request->recipe, **backend);
  if (!inference) {
    return inference.error();
  }
  const auto loaded = load_weights(request->weights, (*inference)->states());
  if (!loaded) {
    return loaded.error();
  }
  tell_numbers(request->weights, *loaded, request->recipe.precision);
  const auto seen = look_at_all(*input, **inference, request->recipe.batch);
  return seen ? write(*request, (*inference)->states(), input->read()) : seen.error();
}

}  // namespace

Command calibrate_command() {
  Command command;
  command.name = "calibrate";
  command.summary = "scales for an inference in fp8, from images that it looks at";
  command.description =
      "Runs a model in fp8 on images that are like those it will answer about, and writes the "
      "largest magnitude of each operand of a product in fp8, and the scale that follows, to a "
      "file. halfwatt infer --precision fp8 --scales FILE then takes the scales from there and "
      "looks for no magnitude while it runs; what is larger than anything seen here becomes "
      "the format's largest number. The file is for these weights alone, which it knows by "
      "their SHA-256. Images are read as halfwatt infer reads them; some hundred of all kinds "
      "will do. Where a number is not finite nothing is written: exit status 4.";
  command.arguments = "PATH...";
  command.options = {
      {"--model", "NAME",
       "vit_{tiny,small,base,large}_patch{16,32}_{224,384}, or vit_micro_patchP_S of any patch "
       "and side"},
      {"--weights", "FILE", "a safetensors file with timm's names, or a training's checkpoint"},
      {"--out", "FILE", "the file of scales"},
      {"--input", "WHAT", "instead of pictures: a safetensors file of images, or synthetic:N"},
      {"--classes", "N", "that the head tells apart; 1000, and 1 is one logit"},
      {"--pool", "WHAT", "what the head sees: token (the default), or mean"},
      {"--batch", "N", "images at once; 8"},
      {"--batches", "N", "look at so many, evenly out of all images; all"},
      compute_device_option(),
      deterministic_option(),
      {"--threads", "N", "of the processor; as many as this process may use"},
      {"--seed", "N", "of synthetic images; 1"},
  };
  command.examples = {
      {"halfwatt calibrate --model vit_tiny_patch16_224 --weights w --out s.json pics",
       "scales for halfwatt infer --precision fp8 --scales s.json"},
  };
  command.run = run;
  return command;
}

}  // namespace halfwatt
