#include "engine/formats/safetensors_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

struct DTypeName {
  DType dtype;
  std::string_view name;
};

// In the order in which the reference implementation ranks them (DType of its tensor.rs).
constexpr std::array kNames = {
    DTypeName{DType::boolean, "BOOL"}, DTypeName{DType::u8, "U8"},
    DTypeName{DType::i8, "I8"},        DTypeName{DType::e5m2, "F8_E5M2"},
    DTypeName{DType::e4m3, "F8_E4M3"}, DTypeName{DType::i16, "I16"},
    DTypeName{DType::u16, "U16"},      DTypeName{DType::f16, "F16"},
    DTypeName{DType::bf16, "BF16"},    DTypeName{DType::i32, "I32"},
    DTypeName{DType::u32, "U32"},      DTypeName{DType::f32, "F32"},
    DTypeName{DType::f64, "F64"},      DTypeName{DType::i64, "I64"},
    DTypeName{DType::u64, "U64"},
};
static_assert(kNames.size() + 1 == kDTypes, "every dtype but tf32 has a name in files");

const DTypeName& row_of(DType dtype) {
  const DType stored = dtype == DType::tf32 ? DType::f32 : dtype;
  return *std::find_if(kNames.begin(), kNames.end(),
                       [stored](const DTypeName& row) { return row.dtype == stored; });
}

std::string all_names() {
  std::string all;
  for (const DTypeName& row : kNames) {
    all += (all.empty() ? "" : ", ") + std::string(row.name);
  }
  return all;
}

// Elements of the extents other than zero, times the width of one: what nothing that is
// computed from the shape can exceed. nullopt where it does not fit 63 bits.
std::optional<std::uint64_t> most_bytes(std::span<const std::uint64_t> extents, DType dtype) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = bytes_of(dtype);
  for (const std::uint64_t extent : extents) {
    if (extent != 0 && bytes > kMost / extent) {
      return std::nullopt;
    }
    bytes *= std::max<std::uint64_t>(extent, 1);
  }
  return bytes;
}

/// Takes the tokens of a header and refuses the first one that has no business there. Nothing
/// nests deeper than fields that are ignored, and these not deep.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(std::string_view json) : json_(json) {}

  SafetensorsHeader take_header() { return std::move(header_); }
  Error error() const { return bad_input(error_); }

  bool null() override { return scalar("null"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return scalar(fmt::format("{}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return scalar(text.size() > kLongestNumber ? text.substr(0, kLongestNumber) + "..." : text);
  }
  bool binary(binary_t&) override { return scalar("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::shape && place_ != Place::offsets) {
      return scalar(fmt::format("{}", value));
    }
    const std::size_t most = place_ == Place::shape ? Shape::kMostExtents : 2;
    if (numbers_.size() == most) {
      return fail(place_ == Place::shape
                      ? fmt::format("more than {} extents; needed at most {}", most, most)
                      : "more than two numbers; needed begin and end");
    }
    numbers_.push_back(value);
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::metadata) {
      return header_.metadata.emplace(key_, std::move(text)).second ||
             fail("there twice; needed once");
    }
    if (place_ != Place::entry || field_ != Field::dtype) {
      return scalar(quoted_name(text));
    }
    const auto row = std::find_if(kNames.begin(), kNames.end(),
                                  [&text](const DTypeName& each) { return each.name == text; });
    if (row == kNames.end()) {
      return fail(fmt::format("{}; needed one of {}", quoted_name(text), all_names()));
    }
    tensor_.type.dtype = row->dtype;
    return true;
  }

  bool key(string_t& text) override {
    if (place_ == Place::root) {
      name_ = std::move(text);
    } else if (place_ == Place::metadata) {
      key_ = std::move(text);
    } else if (place_ == Place::entry) {
      return begin_field(text);
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::start) {
      place_ = Place::root;
      return true;
    }
    if (place_ != Place::root) {
      return nested("an object");
    }
    if (name_ == kMetadata) {
      place_ = Place::metadata;
      return !std::exchange(has_metadata_, true) || fail("there twice; needed once");
    }
    place_ = Place::entry;
    tensor_ = {};
    seen_ = {};
    return true;
  }

  bool end_object() override {
    switch (place_) {
      case Place::ignored:
        leave_nested();
        return true;
      case Place::entry:
        place_ = Place::root;
        return end_entry();
      default:
        place_ = Place::root;
        return true;
    }
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::entry && (field_ == Field::shape || field_ == Field::offsets)) {
      place_ = field_ == Field::shape ? Place::shape : Place::offsets;
      numbers_.clear();
      return true;
    }
    return nested("a list");
  }

  bool end_array() override {
    if (place_ == Place::ignored) {
      leave_nested();
      return true;
    }
    if (place_ == Place::shape) {
      extents_ = numbers_;
    } else if (numbers_.size() != 2) {
      return fail(fmt::format("{} numbers; needed begin and end", numbers_.size()));
    } else {
      offsets_ = {numbers_[0], numbers_[1]};
    }
    place_ = Place::entry;
    return true;
  }

  // Its own text may quote the whole token, which may be as long as the header.
  bool parse_error(std::size_t position,
                   const std::string&,
                   const nlohmann::detail::exception&) override {
    if (position == 0 || position > json_.size()) {
      error_ = "header: the JSON is not complete; needed an object in braces";
    } else {
      error_ = fmt::format("header: byte 0x{:02x} at {} is not JSON in UTF-8 there",
                           static_cast<unsigned char>(json_[position - 1]), position - 1);
    }
    return false;
  }

 private:
  enum class Place { start, root, metadata, entry, shape, offsets, ignored };
  enum class Field { dtype, shape, offsets, other };
  struct FieldName {
    Field field;
    std::string_view name;
    std::string_view needed;
  };
  static constexpr std::array<FieldName, 3> kFields = {{
      {Field::dtype, "dtype", "the name of a dtype"},
      {Field::shape, "shape", "a list of whole numbers from 0 on"},
      {Field::offsets, "data_offsets", "a list of whole numbers from 0 on"},
  }};
  static constexpr std::string_view kMetadata = "__metadata__";
  static constexpr std::size_t kLongestNumber = 32;
  // Of fields that are ignored; nobody writes such yet.
  static constexpr int kDeepest = 16;

  bool in_field() const {
    return place_ == Place::entry || place_ == Place::shape || place_ == Place::offsets;
  }

  std::string where() const {
    if (place_ == Place::start) {
      return "header";
    }
    std::string text =
        name_ == kMetadata ? std::string(kMetadata) : "tensor " + quoted_name(name_);
    if (place_ == Place::metadata && !key_.empty()) {
      text += ", key " + quoted_name(key_);
    } else if (in_field() && field_ != Field::other) {
      text += fmt::format(": {}", kFields[static_cast<std::size_t>(field_)].name);
    }
    return text;
  }

  bool fail(std::string_view what) {
    error_ = fmt::format("{}: {}", where(), what);
    return false;
  }

  bool unexpected(std::string_view found) {
    std::string_view needed = "an object";
    if (place_ == Place::metadata) {
      needed = "text for every key";
    } else if (in_field()) {
      needed = kFields[static_cast<std::size_t>(field_)].needed;
    }
    return fail(fmt::format("{}; needed {}", found, needed));
  }

  bool is_ignored() const {
    return place_ == Place::ignored || (place_ == Place::entry && field_ == Field::other);
  }

  // A value that is no number of a list and no text that is wanted.
  bool scalar(std::string_view found) { return is_ignored() || unexpected(found); }

  bool nested(std::string_view found) {
    if (!is_ignored()) {
      return unexpected(found);
    }
    place_ = Place::ignored;
    ++depth_;
    return depth_ <= kDeepest ||
           fail(fmt::format("an unknown field is nested deeper than {}", kDeepest));
  }

  void leave_nested() {
    --depth_;
    place_ = depth_ == 0 ? Place::entry : Place::ignored;
  }

  bool begin_field(const std::string& text) {
    const auto* const found =
        std::find_if(kFields.begin(), kFields.end(),
                     [&text](const FieldName& each) { return each.name == text; });
    if (found == kFields.end()) {
      field_ = Field::other;
      if (header_.ignored.empty()) {
        header_.ignored =
            fmt::format("tensor {}: field {} is not known; it and others like it are ignored",
                        quoted_name(name_), quoted_name(text));
      }
      return true;
    }
    field_ = found->field;
    bool& seen = seen_[static_cast<std::size_t>(field_)];
    return !std::exchange(seen, true) || fail("there twice; needed once");
  }

  bool end_entry() {
    field_ = Field::other;
    for (const FieldName& each : kFields) {
      if (!seen_[static_cast<std::size_t>(each.field)]) {
        return fail(fmt::format("{} is missing; needed {}", each.name, each.needed));
      }
    }
    const auto [begin, end] = offsets_;
    if (begin > end) {
      return fail(fmt::format("data_offsets go back from {} to {}", begin, end));
    }
    const DType dtype = tensor_.type.dtype;
    if (!most_bytes(extents_, dtype)) {
      return fail(fmt::format("shape [{}] of {} overflows 63 bits of bytes",
                              fmt::join(extents_, ", "), safetensors_name(dtype)));
    }
    std::array<std::int64_t, Shape::kMostExtents> extents{};
    std::transform(extents_.begin(), extents_.end(), extents.begin(),
                   [](std::uint64_t extent) { return static_cast<std::int64_t>(extent); });
    tensor_.type.shape = Shape(std::span<const std::int64_t>(extents.data(), extents_.size()));
    if (tensor_.type.bytes() != end - begin) {
      return fail(fmt::format("data_offsets [{}, {}] hold {} bytes; {} [{}] needs {}", begin,
                              end, end - begin, safetensors_name(dtype),
                              fmt::join(extents_, ", "), tensor_.type.bytes()));
    }
    tensor_.name = std::move(name_);
    tensor_.offset = begin;
    header_.tensors.push_back(std::move(tensor_));
    return true;
  }

  std::string_view json_;
  SafetensorsHeader header_;
  std::string error_;
  Place place_ = Place::start;
  Field field_ = Field::other;
  int depth_ = 0;
  bool has_metadata_ = false;
  std::string name_;  ///< of the tensor, or __metadata__
  std::string key_;   ///< in the metadata
  StoredTensor tensor_;
  std::array<bool, kFields.size()> seen_{};
  std::vector<std::uint64_t> numbers_;
  std::vector<std::uint64_t> extents_;
  std::pair<std::uint64_t, std::uint64_t> offsets_;
};

}  // namespace

std::string_view safetensors_name(DType dtype) { return row_of(dtype).name; }

int safetensors_rank(DType dtype) { return static_cast<int>(&row_of(dtype) - kNames.data()); }

Result<SafetensorsHeader> read_safetensors_json(std::string_view json) {
  // nlohmann-json steps over a byte order mark, and takes a NUL for the end of the text.
  if (json.starts_with("\xef\xbb\xbf")) {
    return bad_input("header: begins with a byte order mark; needed '{'");
  }
  if (const std::size_t at = json.find('\0'); at != std::string_view::npos) {
    return bad_input(fmt::format("header: byte 0x00 at {} is not JSON in UTF-8 there", at));
  }
  HeaderReader reader(json);
  if (!Json::sax_parse(json, &reader)) {
    return reader.error();
  }
  return reader.take_header();
}

}  // namespace halfwatt
