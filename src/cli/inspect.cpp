#include "cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/remark.h"
#include "cli/output.h"
#include "engine/formats/quoted.h"
#include "engine/formats/safetensors.h"
#include "engine/tensor/summary.h"
#include "report/document.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;
using Summaries = std::vector<std::optional<ValueSummary>>;  ///< empty if nobody asked

constexpr std::string_view kUnknown = "unknown";
// Wide enough that names stay whole: half a name is of no use to whoever wants to copy it.
constexpr int kWholeNames = 1000;

// Escaped as in JSON, but without its quotation marks where they say nothing.
std::string name_of(std::string_view text) {
  const std::string quotes = quoted_name(text);
  const bool plain = quotes.size() == text.size() + 2 && !text.empty();
  return plain ? std::string(text) : quotes;
}

std::int64_t elements_of(const SafetensorsHeader& header) {
  std::int64_t elements = 0;
  for (const StoredTensor& each : header.tensors) {
    elements += each.type.shape.elements();
  }
  return elements;
}

// One tensor in memory at a time.
Result<Summaries> look_at_values(const SafetensorsFile& file) {
  Summaries all;
  for (const StoredTensor& each : file.header().tensors) {
    const Result<Tensor> tensor = file.read(each);
    if (!tensor) {
      return tensor.error();
    }
    all.push_back(summary(tensor->view()));
  }
  return all;
}

void add_values(std::vector<Cell>& row, const std::optional<ValueSummary>& values) {
  const Cell unknown{std::string(kUnknown), Emphasis::faint};
  if (!values) {
    row.insert(row.end(), 5, unknown);
    return;
  }
  row.push_back({fmt::format("{}", values->not_finite),
                 values->not_finite > 0 ? Emphasis::bad : Emphasis::plain});
  if (!values->finite) {
    row.insert(row.end(), 4, unknown);
    return;
  }
  const auto& [min, max, mean, rms] = *values->finite;
  for (const double value : {min, max, mean, rms}) {
    row.push_back({fmt::format("{:.4g}", value)});
  }
}

Document document(const SafetensorsFile& file,
                  const std::string& name,
                  const Summaries& values) {
  const SafetensorsHeader& header = file.header();
  Table table;
  table.columns = {{"name", false}, {"dtype", false}, {"shape", false}, {"bytes"}};
  if (!values.empty()) {
    table.columns.insert(table.columns.end(),
                         {{"not finite"}, {"min"}, {"max"}, {"mean"}, {"rms"}});
  }
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const auto& [tensor, type, offset] = header.tensors[i];
    table.rows.push_back({{name_of(tensor)},
                          {std::string(safetensors_name(type.dtype))},
                          {text(type.shape)},
                          {fmt::format("{}", type.bytes())}});
    if (!values.empty()) {
      add_values(table.rows.back(), values[i]);
    }
  }
  Document all{name, ""};
  if (!table.rows.empty()) {
    all.blocks.push_back(std::move(table));
  }
  const std::size_t count = header.tensors.size();
  all.blocks.push_back(Paragraph{fmt::format(
      "{} tensor{}, {} elements; {} bytes of data, {} of header", count, count == 1 ? "" : "s",
      elements_of(header), file.file_bytes() - file.header_bytes(), file.header_bytes())});
  std::string metadata;
  for (const auto& [key, value] : header.metadata) {
    metadata += (metadata.empty() ? "" : "\n") + name_of(key) + ": " + name_of(value);
  }
  if (!metadata.empty()) {
    all.blocks.push_back(Heading{"Metadata"});
    all.blocks.push_back(Paragraph{metadata});
  }
  return all;
}

Json to_json(const std::optional<ValueSummary>& values) {
  if (!values) {
    return nullptr;
  }
  Json json = {{"not_finite", values->not_finite}};
  for (const auto& [name, member] : {std::pair("min", &ValueSummary::Finite::min),
                                     std::pair("max", &ValueSummary::Finite::max),
                                     std::pair("mean", &ValueSummary::Finite::mean),
                                     std::pair("rms", &ValueSummary::Finite::rms)}) {
    json[name] = values->finite ? Json((*values->finite).*member) : Json(nullptr);
  }
  return json;
}

Json to_json(const SafetensorsFile& file, const std::string& name, const Summaries& values) {
  const SafetensorsHeader& header = file.header();
  Json json = {{"schema", "halfwatt.inspect/1"},
               {"file", name},
               {"format", "safetensors"},
               {"file_bytes", file.file_bytes()},
               {"header_bytes", file.header_bytes()},
               {"elements", elements_of(header)},
               {"metadata", Json::object()},
               {"tensors", Json::array()}};
  for (const auto& [key, value] : header.metadata) {
    json["metadata"][key] = value;
  }
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const StoredTensor& each = header.tensors[i];
    Json tensor = {{"name", each.name},
                   {"dtype", safetensors_name(each.type.dtype)},
                   {"shape", each.type.shape.extents()},
                   {"offset", file.header_bytes() + each.offset},
                   {"bytes", each.type.bytes()}};
    if (!values.empty()) {
      tensor["values"] = to_json(values[i]);
    }
    json["tensors"].push_back(std::move(tensor));
  }
  return json;
}

Result<void> run(const Invocation& invocation) {
  if (invocation.arguments().size() != 1) {
    return bad_input(
        fmt::format("inspect: {} files given, needed one FILE", invocation.arguments().size()));
  }
  const std::string format = invocation.get("--format").value_or("text");
  if (format != "text" && format != "json") {
    return bad_input(fmt::format("--format {}: needed text or json", format));
  }
  const std::string& name = invocation.arguments().front();
  const Result<SafetensorsFile> file = SafetensorsFile::open(name);
  if (!file) {
    return file.error();
  }
  const Result<Summaries> values =
      invocation.has("--values") ? look_at_values(*file) : Summaries();
  if (!values) {
    return values.error();
  }
  if (!file->header().ignored.empty()) {
    remark(fmt::format("{}: {}", shown(name), file->header().ignored));
  }
  if (format == "json") {
    return print(
        to_json(*file, name, *values).dump(2, ' ', false, Json::error_handler_t::replace) +
        "\n");
  }
  return print(for_stdout(document(*file, name, *values), kWholeNames));
}

}  // namespace

Command inspect_command() {
  Command command;
  command.name = "inspect";
  command.summary = "what tensors a file holds";
  command.description =
      "Lists the tensors of a safetensors file: name, dtype, shape and bytes, in the order in "
      "which they lie, then their sum and the file's metadata. Reads its header alone, so a "
      "large file is listed at once; a malformed one is refused with the reason.";
  command.arguments = "FILE";
  command.options = {
      {"--values", "",
       "also read all tensors, and tell of each how many elements are not finite, and min, "
       "max, mean and rms of the others; 'unknown' of 16-bit floats and fp8"},
      {"--format", "FORMAT", "text (the default) or json"},
  };
  command.examples = {
      {"halfwatt inspect model.safetensors --values", "is there a NaN in these weights?"},
  };
  command.run = run;
  return command;
}

}  // namespace halfwatt
