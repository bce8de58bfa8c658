#include "cli/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "base/numerical_state.h"
#include "base/remark.h"
#include "base/rng.h"
#include "cli/compute_device.h"
#include "cli/infer_input.h"
#include "cli/model_flags.h"
#include "cli/output.h"
#include "engine/formats/quoted.h"
#include "engine/formats/safetensors.h"
#include "engine/infer/calibration.h"
#include "engine/infer/inference.h"
#include "engine/models/images.h"
#include "engine/models/weights.h"
#include "engine/tensor/convert.h"
#include "report/document.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

/// What was asked for.
struct Request {
  InferRecipe recipe;
  ImageSource source;
  std::string format;
  int top = 5;
  DeviceId device;
  bool deterministic = false;
  int threads = 0;
};

struct Likely {
  std::int64_t label = 0;
  double logit = 0;
  double probability = 0;  ///< by softmax; of a single logit by the logistic function
};

/// What the model says of one image: the likeliest classes first, none if a logit is not
/// finite.
struct Answer {
  std::string name;  ///< its path, or its number
  NumericalState state = NumericalState::unknown;
  std::vector<Likely> top;
};

struct Answers {
  std::vector<Answer> images;
  std::vector<std::string> classes;  ///< their names by label; empty where nobody knows them
  std::vector<std::string> bad;      ///< why pictures were left out
  bool is_emulated = false;

  std::optional<std::string> name_of(const Likely& likely) const {
    return classes.empty() ? std::nullopt
                           : std::optional(classes[static_cast<std::size_t>(likely.label)]);
  }
  NumericalState state() const {
    const bool dead = std::any_of(images.begin(), images.end(), [](const Answer& each) {
      return each.state == NumericalState::dead;
    });
    return dead ? NumericalState::dead : NumericalState::live;
  }
};

// The scales of --scales, if there are some.
Result<std::optional<Fp8Scales>> scales_asked(const Invocation& invocation,
                                              const VitConfig& model,
                                              const Precision& precision) {
  const auto path = invocation.get("--scales");
  if (!path) {
    return std::optional<Fp8Scales>();
  }
  if (bytes_of(precision.compute) != 1 || precision.delayed) {
    return bad_input(fmt::format("--scales {}: they are for --precision fp8, found {}",
                                 shown(*path), precision.name));
  }
  const auto weights = invocation.get("--weights");
  if (!weights) {
    return bad_input(
        fmt::format("--scales {}: needed --weights, the file that they are of", shown(*path)));
  }
  auto scales = read_scales(*path, model.name, *weights);
  return scales ? Result<std::optional<Fp8Scales>>(std::move(*scales)) : scales.error();
}

Result<InferRecipe> read_recipe(const Invocation& invocation) {
  auto model = model_asked(invocation);
  auto precision = precision_asked(invocation);
  auto overrides = overrides_asked(invocation);
  const auto batch = invocation.whole("--batch", 8, 1, 1'000'000);
  if (!model || !precision) {
    return !model ? model.error() : precision.error();
  }
  if (!batch || !overrides) {
    return !batch ? batch.error() : overrides.error();
  }
  auto scales = scales_asked(invocation, *model, *precision);
  if (!scales) {
    return scales.error();
  }
  return InferRecipe{std::move(*model), std::move(*precision), std::move(*overrides),
                     static_cast<std::int64_t>(*batch), std::move(*scales)};
}

Result<Request> read_request(const Invocation& invocation) {
  auto recipe = read_recipe(invocation);
  if (!recipe) {
    return recipe.error();
  }
  auto source = image_source_asked(invocation, "infer");
  if (!source) {
    return source.error();
  }
  recipe->normalisation = normalisation_left(*source, recipe->model);
  const std::string format = invocation.get("--format").value_or("table");
  if (format != "table" && format != "csv" && format != "json") {
    return bad_input(fmt::format("--format {}: needed table, csv or json", format));
  }
  const auto top = invocation.whole("--top", 5, 1, 1'000'000);
  const auto threads = invocation.whole("--threads", 0, 1, 1024);
  auto device = compute_device_asked(invocation);
  if (!device) {
    return device.error();
  }
  for (const auto* each : {&top, &threads}) {
    if (!*each) {
      return each->error();
    }
  }
  return Request{
      std::move(*recipe),        std::move(*source), format,
      static_cast<int>(*top),    std::move(*device), invocation.has("--deterministic"),
      static_cast<int>(*threads)};
}

// Of a single logit, which is of the second of two classes, that one's alone. Names that are
// not as many as the classes are of something else.
std::vector<std::string> names_by_label(std::vector<std::string> names, std::int64_t classes) {
  if (classes == 1 && names.size() == 2) {
    return {std::move(names[1])};
  }
  return std::ssize(names) == classes ? std::move(names) : std::vector<std::string>();
}

// Sets them, and gives the names of their classes, as far as the file knows them.
Result<std::vector<std::string>> set_weights(const Invocation& invocation,
                                             const Request& request,
                                             States& states) {
  const auto path = invocation.get("--weights");
  if (!path) {
    remark(fmt::format("no --weights: they are drawn from seed {}, as before any training",
                       request.source.seed));
    draw_weights(states, request.source.seed);
    return std::vector<std::string>();
  }
  auto report = load_weights(*path, states);
  if (!report) {
    return report.error();
  }
  tell_numbers(*path, *report, request.recipe.precision);
  return names_by_label(std::move(report->classes), request.recipe.model.classes);
}

std::vector<Likely> likeliest(std::span<const double> logits, int top) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) {
    sum += std::exp(logit - largest);
  }
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = std::min<std::ptrdiff_t>(top, std::ssize(order));
  const auto logit = [&](std::int64_t at) { return logits[static_cast<std::size_t>(at)]; };
  // Of equals the first class first, so that the order is the same everywhere.
  std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                    [&](std::int64_t one, std::int64_t other) {
                      return logit(one) != logit(other) ? logit(one) > logit(other)
                                                        : one < other;
                    });
  std::vector<Likely> best;
  for (auto at = order.begin(); at != order.begin() + kept; ++at) {
    best.push_back({*at, logit(*at),
                    logits.size() == 1 ? 1 / (1 + std::exp(-logit(*at)))
                                       : std::exp(logit(*at) - largest) / sum});
  }
  return best;
}

std::vector<Answer> answers(const Tensor& logits,
                            const std::vector<std::string>& names,
                            int top) {
  Tensor wide(TensorType{DType::f64, logits.shape()});
  convert(logits.view(), wide.view());
  const std::span<const double> all = wide.as<double>();
  const auto classes = static_cast<std::size_t>(logits.shape()[1]);
  std::vector<Answer> rows;
  for (std::size_t at = 0; at < all.size(); at += classes) {
    const auto row = all.subspan(at, classes);
    const bool finite =
        std::all_of(row.begin(), row.end(), [](double logit) { return std::isfinite(logit); });
    const std::string& name = names[at / classes];
    rows.push_back(finite ? Answer{name, NumericalState::live, likeliest(row, top)}
                          : Answer{name, NumericalState::dead, {}});
  }
  return rows;
}

std::string table(const Request& request, const Answers& answers) {
  Table table;
  table.columns = {{"image", request.source.paths.empty()},
                   {"class", answers.classes.empty()},
                   {"logit"},
                   {"probability"},
                   {"state", false}};
  for (const Answer& answer : answers.images) {
    const Cell state{std::string(text(answer.state)),
                     answer.state == NumericalState::dead ? Emphasis::bad : Emphasis::plain};
    if (answer.top.empty()) {
      const Cell unknown{"unknown", Emphasis::faint};
      table.rows.push_back({{shown(answer.name)}, unknown, unknown, unknown, state});
    }
    for (const Likely& each : answer.top) {
      table.rows.push_back({{shown(answer.name)},
                            {answers.classes.empty() ? fmt::format("{}", each.label)
                                                     : shown(*answers.name_of(each))},
                            {fmt::format("{:.5g}", each.logit)},
                            {fmt::format("{:.4f}", each.probability)},
                            state});
    }
  }
  const InferRecipe& recipe = request.recipe;
  Document document{fmt::format("{} in {}{}", recipe.model.name, recipe.precision.name,
                                recipe.scales ? " with fixed scales" : ""),
                    "",
                    {}};
  document.blocks.push_back(std::move(table));
  if (answers.is_emulated) {
    document.blocks.push_back(
        Note{"emulated: this device stores and rounds in the format and computes in fp32; the "
             "numbers are right, the speed says nothing"});
  }
  return for_stdout(document);
}

std::string csv(const Request& request, const Answers& answers) {
  std::string lines = "image,rank,class,logit,probability,state,precision,emulated,name\n";
  // A precision in words has commas in it.
  const std::string tail =
      fmt::format("\"{}\",{}", request.recipe.precision.name, answers.is_emulated);
  for (const Answer& answer : answers.images) {
    const std::string image =
        request.source.paths.empty() ? answer.name : quoted_name(answer.name);
    if (answer.top.empty()) {
      lines += fmt::format("{},,,,,{},{},\n", image, text(answer.state), tail);
    }
    for (std::size_t rank = 0; rank < answer.top.size(); ++rank) {
      const Likely& each = answer.top[rank];
      const auto name = answers.name_of(each);
      lines += fmt::format("{},{},{},{},{},{},{},{}\n", image, rank + 1, each.label, each.logit,
                           each.probability, text(answer.state), tail,
                           name ? quoted_name(*name) : "");
    }
  }
  return lines;
}

std::string json(const Invocation& invocation, const Request& request, const Answers& answers) {
  const InferRecipe& recipe = request.recipe;
  const auto weights = invocation.get("--weights");
  const auto scales = invocation.get("--scales");
  Json json = {{"schema", "halfwatt.infer/1"},
               {"model", recipe.model.name},
               {"classes", recipe.model.classes},
               {"pool", recipe.model.pool == VitConfig::Pool::mean ? "mean" : "token"},
               {"precision", recipe.precision.name},
               {"overrides", invocation.all("--override")},
               {"emulated", answers.is_emulated},
               {"weights", weights ? Json(*weights) : Json(nullptr)},
               {"scales", scales ? Json(*scales) : Json(nullptr)},
               {"input", request.source.paths.empty() ? Json(request.source.input)
                                                      : Json(request.source.paths)},
               {"seed", request.source.seed},
               {"batch", recipe.batch},
               {"numerical_state", text(answers.state())},
               {"bad", answers.bad},
               {"images", Json::array()}};
  for (const Answer& answer : answers.images) {
    Json top = Json::array();
    for (const Likely& each : answer.top) {
      const auto name = answers.name_of(each);
      top.push_back({{"class", each.label},
                     {"name", name ? Json(*name) : Json(nullptr)},
                     {"logit", each.logit},
                     {"probability", each.probability}});
    }
    json["images"].push_back({{"image", answer.name},
                              {"numerical_state", text(answer.state)},
                              {"top", answer.top.empty() ? Json(nullptr) : std::move(top)}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<void> write_logits(const Invocation& invocation,
                          const Request& request,
                          const Tensor& logits) {
  const auto path = invocation.get("--output");
  if (!path) {
    return {};
  }
  const NamedTensor tensor{"logits", logits.view()};
  return write_safetensors(
      *path, {&tensor, 1},
      {{"model", request.recipe.model.name}, {"precision", request.recipe.precision.name}});
}

Result<void> show(const Invocation& invocation,
                  const Request& request,
                  const Answers& answers) {
  auto printed = print(request.format == "json"  ? json(invocation, request, answers)
                       : request.format == "csv" ? csv(request, answers)
                                                 : table(request, answers));
  if (!printed || answers.state() == NumericalState::live) {
    return printed;
  }
  const auto is_dead = [](const Answer& each) { return each.state == NumericalState::dead; };
  const auto first = std::find_if(answers.images.begin(), answers.images.end(), is_dead);
  return Error{
      ErrorKind::workload,
      fmt::format("dead: {} of {} images have logits that are not finite, the first is "
                  "image {}; halfwatt inspect --values tells whether the weights are, "
                  "and --precision fp32 whether its range mends it",
                  std::count_if(answers.images.begin(), answers.images.end(), is_dead),
                  answers.images.size(), first - answers.images.begin())};
}

// The logits of all parts, one behind the other.
Tensor joined(const std::vector<Tensor>& parts) {
  std::int64_t rows = 0;
  for (const Tensor& part : parts) {
    rows += part.shape()[0];
  }
  Tensor all(TensorType{parts[0].type().dtype, parts[0].shape().with(0, rows)});
  auto to = all.view().bytes();
  for (const Tensor& part : parts) {
    const auto from = part.view().bytes();
    std::copy(from.begin(), from.end(), to.begin());
    to = to.subspan(from.size());
  }
  return all;
}

// Part by part: a folder may hold more pictures than memory.
Result<void> answer_all(const Invocation& invocation,
                        const Request& request,
                        InferInput& input,
                        Inference& inference,
                        std::vector<std::string> classes) {
  constexpr std::int64_t kBatches = 32;
  Answers all;
  all.is_emulated = inference.is_emulated();
  all.classes = std::move(classes);
  std::vector<Tensor> logits;
  while (const auto part = input.next(kBatches * request.recipe.batch)) {
    auto some = inference.logits(part->images.view());
    if (!some) {
      return some.error();
    }
    auto rows = answers(*some, part->names, request.top);
    std::move(rows.begin(), rows.end(), std::back_inserter(all.images));
    logits.push_back(std::move(*some));
  }
  all.bad = input.bad();
  if (const auto told = input.tell(); !told) {
    return told.error();
  }
  if (const auto written = write_logits(invocation, request, joined(logits)); !written) {
    return written.error();
  }
  return show(invocation, request, all);
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
  const auto inference = Inference::open(request->recipe, **backend);
  if (!inference) {
    return inference.error();
  }
  auto classes = set_weights(invocation, *request, (*inference)->states());
  if (!classes) {
    return classes.error();
  }
  return answer_all(invocation, *request, *input, **inference, std::move(*classes));
}

}  // namespace

Command infer_command() {
  Command command;
  command.name = "infer";
  command.summary = "a Vision Transformer's logits of images, in any precision";
  command.description =
      "Runs a model on the processors of this machine or on an NVIDIA card and prints the "
      "likeliest classes of each "
      "image. Weights are a safetensors file under timm's names; without one they are drawn as "
      "before any training, which is said. Images are pictures (JPEG, PNG, folders of them), "
      "seen as timm's evaluation of the model sees them, or the tensor `images` of a "
      "safetensors "
      "file (or its only one), f32 [N, channels, side, side], or random numbers. Pictures that "
      "cannot be read are named, counted and left out.\n\nAlways a "
      "whole batch is computed, so an image has the same logits to the bit beside any others; "
      "not so in fp8, whose scale is one for the batch, unless --scales has a file of those "
      "that "
      "halfwatt calibrate found. fp8-delayed needs the scales that a "
      "training found: a file without them is refused. A precision that this device does not "
      "have is emulated, and labelled so. An image whose logits are not finite is dead: exit "
      "status 4.";
  command.arguments = "PATH...";
  command.options = {
      {"--model", "NAME",
       "vit_{tiny,small,base,large}_patch{16,32}_{224,384}, or vit_micro_patchP_S of any patch "
       "and side"},
      {"--weights", "FILE", "a safetensors file with timm's names, or a training's checkpoint"},
      {"--input", "WHAT", "instead of pictures: a safetensors file of images, or synthetic:N"},
      {"--classes", "N", "that the head tells apart; 1000, and 1 is one logit"},
      {"--pool", "WHAT", "what the head sees: token (the default), or mean"},
      precision_option(),
      {"--override", "PATTERN=MODE", "another precision for some layers, as 'head.*=fp32'",
       true},
      {"--scales", "FILE", "for --precision fp8: what halfwatt calibrate found"},
      {"--batch", "N", "images at once; 8"},
      {"--top", "K", "classes to print of each image; 5"},
      compute_device_option(),
      deterministic_option(),
      {"--threads", "N", "of the processor; as many as this process may use"},
      {"--seed", "N", "of synthetic images, and of weights without a file; 1"},
      {"--format", "FORMAT", "table (the default), csv or json"},
      {"--output", "FILE",
       "also write all logits: a safetensors file with the tensor `logits`"},
  };
  command.examples = {
      {"halfwatt infer --model vit_tiny_patch16_224 --weights w.st photos/ cat.jpg",
       "what is in these pictures?"},
      {"halfwatt infer --model vit_micro_patch4_16 --input synthetic:4 --precision fp8",
       "does it run here?"},
  };
  command.run = run;
  return command;
}

}  // namespace halfwatt
