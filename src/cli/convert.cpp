#include "cli/convert.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/remark.h"
#include "cli/output.h"
#include "engine/formats/quoted.h"
#include "engine/formats/safetensors.h"
#include "engine/models/weights_file.h"
#include "engine/passes/precision.h"
#include "engine/tensor/narrow.h"
#include "report/document.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWholeNames = 1000;  // half a name cannot be copied

struct Request {
  std::string from;
  std::string to;
  DType dtype = DType::f16;
  Overflow overflow = Overflow::as_format;
  std::vector<std::string> keep;  ///< patterns of tensors that stay as they are
  bool json = false;
};

struct ConvertedTensor {
  std::string name;
  Tensor tensor;
  std::optional<Narrowing> narrowing;  ///< nullopt: it stays as it was
};

Result<Request> read_request(const Invocation& invocation) {
  if (invocation.arguments().size() != 2) {
    return bad_input(fmt::format("convert: {} files given, needed FROM and TO",
                                 invocation.arguments().size()));
  }
  Request request;
  request.from = invocation.arguments()[0];
  request.to = invocation.arguments()[1];
  const std::string name = invocation.get("--dtype").value_or("f16");
  const auto dtype = dtype_named(name);
  if (!dtype || (*dtype != DType::f16 && *dtype != DType::bf16 && *dtype != DType::f32)) {
    return bad_input(fmt::format("--dtype {}: needed f16, bf16 or f32", name));
  }
  request.dtype = *dtype;
  request.overflow = invocation.has("--saturate") ? Overflow::saturate : Overflow::as_format;
  request.keep = invocation.all("--keep");
  const std::string format = invocation.get("--format").value_or("text");
  if (format != "text" && format != "json") {
    return bad_input(fmt::format("--format {}: needed text or json", format));
  }
  request.json = format == "json";
  return request;
}

bool is_kept(const Request& request, const WeightsFile::Weight& weight) {
  return !is_float(weight.stored->type.dtype) ||
         std::any_of(request.keep.begin(), request.keep.end(),
                     [&](const std::string& each) { return matches(each, weight.name); });
}

// The file's tensors, of which one is in memory in its old dtype at a time.
Result<std::vector<ConvertedTensor>> convert_all(const WeightsFile& file,
                                                 const Request& request) {
  std::vector<ConvertedTensor> all;
  for (const WeightsFile::Weight& weight : file.weights()) {
    auto tensor = file.read(*weight.stored);
    if (!tensor) {
      return tensor.error();
    }
    if (is_kept(request, weight)) {
      all.push_back({weight.name, std::move(*tensor), std::nullopt});
      continue;
    }
    Tensor converted(TensorType{request.dtype, weight.stored->type.shape});
    const Narrowing narrowing = narrow(tensor->view(), converted.view(), request.overflow);
    all.push_back({weight.name, std::move(converted), narrowing});
  }
  return all;
}

// Weights with an infinity in them are dead; nobody wants these by accident.
Result<void> check_overflow(const std::vector<ConvertedTensor>& all, const Request& request) {
  for (const ConvertedTensor& each : all) {
    if (request.overflow == Overflow::as_format && each.narrowing &&
        each.narrowing->overflowed > 0) {
      return bad_input(fmt::format(
          "{}: {} of {} numbers in {} are too large for {} (up to {:.4g}, it ends at {:.4g}); "
          "needed --saturate, --keep with the tensor's name, or --dtype bf16",
          request.from, each.narrowing->overflowed, each.narrowing->elements,
          quoted_name(each.name), text(request.dtype), each.narrowing->largest,
          facts(request.dtype).max));
    }
  }
  return {};
}

Result<void> check_keep(const WeightsFile& file, const Request& request) {
  const auto weights = file.weights();
  for (const std::string& pattern : request.keep) {
    if (std::none_of(weights.begin(), weights.end(), [&](const WeightsFile::Weight& each) {
          return matches(pattern, each.name);
        })) {
      return bad_input(
          fmt::format("--keep {}: no tensor of {} is called so; `halfwatt inspect` "
                      "lists them",
                      pattern, request.from));
    }
  }
  return {};
}

Json to_json(const Narrowing& narrowing) {
  return {{"elements", narrowing.elements},     {"not_finite", narrowing.not_finite},
          {"overflowed", narrowing.overflowed}, {"underflowed", narrowing.underflowed},
          {"subnormal", narrowing.subnormal},   {"largest", narrowing.largest}};
}

std::string json_text(const std::vector<ConvertedTensor>& all,
                      const Narrowing& sum,
                      const Request& request) {
  Json json = {
      {"schema", "halfwatt.convert/1"}, {"from", request.from},  {"to", request.to},
      {"dtype", text(request.dtype)},   {"total", to_json(sum)}, {"tensors", Json::array()}};
  for (const ConvertedTensor& each : all) {
    Json tensor = {{"name", each.name}, {"dtype", text(each.tensor.type().dtype)}};
    tensor["narrowing"] = each.narrowing ? to_json(*each.narrowing) : Json(nullptr);
    json["tensors"].push_back(std::move(tensor));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Tensors that lost something, and the sum.
Document document(const std::vector<ConvertedTensor>& all,
                  const Narrowing& sum,
                  const Request& request) {
  Table table;
  table.columns = {{"tensor", false}, {"elements"},   {"too large"}, {"became 0"},
                   {"subnormal"},     {"not finite"}, {"largest"}};
  std::size_t converted = 0;
  for (const ConvertedTensor& each : all) {
    if (!each.narrowing) {
      continue;
    }
    ++converted;
    const Narrowing& lost = *each.narrowing;
    if (lost.overflowed + lost.underflowed + lost.subnormal + lost.not_finite > 0) {
      table.rows.push_back({{quoted_name(each.name)},
                            {fmt::format("{}", lost.elements)},
                            {fmt::format("{}", lost.overflowed)},
                            {fmt::format("{}", lost.underflowed)},
                            {fmt::format("{}", lost.subnormal)},
                            {fmt::format("{}", lost.not_finite)},
                            {fmt::format("{:.4g}", lost.largest)}});
    }
  }
  Document page{request.to, ""};
  if (!table.rows.empty()) {
    page.blocks.push_back(std::move(table));
  }
  page.blocks.push_back(Paragraph{fmt::format(
      "{} of {} tensors converted to {}: of {} numbers {} were too large, {} became 0, {} are "
      "subnormal, {} were not finite.",
      converted, all.size(), text(request.dtype), sum.elements, sum.overflowed, sum.underflowed,
      sum.subnormal, sum.not_finite)});
  return page;
}

Result<void> run(const Invocation& invocation) {
  const auto request = read_request(invocation);
  if (!request) {
    return request.error();
  }
  const auto file = WeightsFile::open(request->from);
  if (!file) {
    return file.error();
  }
  if (const auto fine = check_keep(*file, *request); !fine) {
    return fine.error();
  }
  const auto all = convert_all(*file, *request);
  if (!all) {
    return all.error();
  }
  if (const auto fine = check_overflow(*all, *request); !fine) {
    return fine.error();
  }
  std::vector<NamedTensor> tensors;
  Narrowing sum;
  for (const ConvertedTensor& each : *all) {
    tensors.push_back({each.name, each.tensor.view()});
    sum.add(each.narrowing.value_or(Narrowing{}));
  }
  const auto written = write_safetensors(request->to, tensors, file->metadata());
  if (!written) {
    return written.error();
  }
  if (sum.not_finite > 0) {
    remark(
        fmt::format("{}: {} numbers were not finite before: whatever computes with them is "
                    "dead",
                    request->from, sum.not_finite));
  }
  return print(request->json ? json_text(*all, sum, *request)
                             : for_stdout(document(*all, sum, *request), kWholeNames));
}

}  // namespace

Command convert_command() {
  Command command;
  command.name = "convert";
  command.summary = "weights in another format, and what that cost them";
  command.description =
      "Writes the tensors of a safetensors file in f16, bf16 or f32, rounded to nearest, and "
      "counts of each how many numbers were too large, became 0 or are subnormal. Integers "
      "stay as they are. Of a training's checkpoint these are the weights that were evaluated. "
      "If a number is too large for the format nothing is written, unless it may "
      "saturate. TO is all of the new file or, on any error, what it was.";
  command.arguments = "FROM TO";
  command.options = {
      {"--dtype", "DTYPE", "f16 (the default), bf16 or f32"},
      {"--saturate", "", "numbers that are too large become the largest"},
      {"--keep", "PATTERN", "tensors that stay as they are, as '*.norm*'", true},
      {"--format", "FORMAT", "text (the default) or json"},
  };
  command.examples = {
      {"halfwatt convert model.safetensors half.safetensors --dtype bf16",
       "half the file, for an inference in bf16"},
  };
  command.run = run;
  return command;
}

}  // namespace halfwatt
