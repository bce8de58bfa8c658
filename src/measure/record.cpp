#include "measure/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "measure/record_json.h"

namespace halfwatt {
namespace {

// A window's line is below 2 KiB, and a header's a little longer than the measured command.
constexpr std::size_t kLongestLine = 1U << 20U;
constexpr std::uintmax_t kLargestFile = 256U << 20U;

Error cannot(std::string_view what, const std::filesystem::path& path, int why) {
  return bad_input(fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(why)));
}

// The folder must be on disk too, or a new file is lost with the power.
void sync_folder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

Result<std::string> read_text(const std::filesystem::path& path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) {
    return cannot("read", path, failed.value());
  }
  if (size > kLargestFile) {
    return bad_input(fmt::format("{}: the file has {} MiB; no record has over {} MiB",
                                 path.string(), size >> 20U, kLargestFile >> 20U));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return cannot("read", path, errno);
  }
  return std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string names(const std::vector<Knob>& knobs) {
  std::string joined;
  for (const Knob& knob : knobs) {
    joined += (joined.empty() ? "" : ", ") + knob.name;
    joined += knob.unit.empty() ? "" : fmt::format(" in {}", knob.unit);
  }
  return joined;
}

std::string text(const std::optional<LimitRange>& limits) {
  if (!limits) {
    return "unknown";
  }
  const std::string range =
      fmt::format("{:g} to {:g} W", limits->min.value(), limits->max.value());
  return limits->preset ? fmt::format("{}, preset {:g} W", range, limits->preset->value())
                        : range;
}

// Commands can be long; the first word that is another one says it.
std::string difference(const std::vector<std::string>& found,
                       const std::vector<std::string>& wanted) {
  const auto word = [](const std::vector<std::string>& command, std::size_t at) {
    return at < command.size() ? in_quotes(command[at]) : "missing";
  };
  std::size_t at = 0;
  while (at < found.size() && at < wanted.size() && found[at] == wanted[at]) {
    ++at;
  }
  return fmt::format("word {} of its command is {}, not {}", at + 1, word(found, at),
                     word(wanted, at));
}

std::string difference(const RecordHeader& found, const RecordHeader& wanted) {
  const auto differ = [](std::string_view what, const std::string& a, const std::string& b) {
    return fmt::format("its {} is {}, not {}", what, in_quotes(a), in_quotes(b));
  };
  if (found.device_id != wanted.device_id) {
    return differ("device", found.device_id, wanted.device_id);
  }
  if (found.workload != wanted.workload) {
    return differ("workload", found.workload, wanted.workload);
  }
  if (found.command != wanted.command) {
    return difference(found.command, wanted.command);
  }
  if (found.knobs != wanted.knobs) {
    return differ("list of knobs", names(found.knobs), names(wanted.knobs));
  }
  if (found.limits != wanted.limits) {
    return differ("range of limits", text(found.limits), text(wanted.limits));
  }
  // The verdict of the whole record must be the one that the first line asks for.
  if (found.keep_percent != wanted.keep_percent) {
    return differ("--keep", fmt::format("{:g}", fmt::join(found.keep_percent, ",")),
                  fmt::format("{:g}", fmt::join(wanted.keep_percent, ",")));
  }
  if (found.reference != wanted.reference) {
    return differ("--reference", found.reference, wanted.reference);
  }
  return {};
}

Error of_the_knob(const std::string& where, const std::string& knob, std::string_view what) {
  return bad_input(fmt::format("{}: field setting: {} {}", where, in_quotes(knob), what));
}

// A window without the value that the series runs along could not be placed.
Result<void> check_setting(const Setting& setting, const Knob& knob, const std::string& where) {
  for (const auto& [name, value] : setting.values()) {
    if (name != knob.name) {
      continue;
    }
    const double* number = std::get_if<double>(&value);
    if (number != nullptr && *number <= 0) {
      return of_the_knob(where, name, fmt::format("is {:g}; needed more than 0", *number));
    }
    return {};
  }
  return of_the_knob(where, knob.name, "is missing");
}

// A simulated device is named by a file, which may have commas in its name.
int cards_in(const std::string& device_id) {
  const auto commas = std::count(device_id.begin(), device_id.end(), ',');
  return device_id.starts_with("GPU-") ? 1 + static_cast<int>(commas) : 1;
}

}  // namespace

bool looks_like_record(std::string_view text) { return !text.empty() && text.front() == '{'; }

Result<Record> parse_record(std::string_view text, const std::string& file) {
  Record record;
  bool have_header = false;
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::string where = fmt::format("{}:{}", file, line_number);
    const std::size_t end = text.find('\n');
    const bool whole = end != std::string_view::npos;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(whole ? end + 1 : text.size());
    if (line.size() > kLongestLine) {
      return bad_input(fmt::format("{}: the line has {} bytes; no record has lines over {}",
                                   where, line.size(), kLongestLine));
    }
    if (!have_header) {
      Result<RecordHeader> header = parse_header_line(line, where);
      if (!header) {
        return header.error();
      }
      record.header = std::move(*header);
      have_header = true;
      continue;
    }
    Result<Measurement> measurement = parse_measurement_line(line, where);
    if (!measurement) {
      // Every line is written with its end; one without was cut off while it was written.
      if (!whole) {
        record.dropped_last_line = true;
        break;
      }
      return measurement.error();
    }
    const Result<void> placed =
        check_setting(measurement->setting, record.header.knobs.front(), where);
    if (!placed) {
      return placed.error();
    }
    record.measurements.push_back(std::move(*measurement));
  }
  if (!have_header) {
    return bad_input(fmt::format("{}: the file is empty; needed a record", file));
  }
  return record;
}

Result<Record> read_record(const std::filesystem::path& path) {
  const Result<std::string> text = read_text(path);
  if (!text) {
    return text.error();
  }
  return parse_record(*text, path.string());
}

Series to_series(const Record& record) {
  Series series;
  series.labels = record.header.labels;
  series.device = record.header.device;
  series.cards = cards_in(record.header.device_id);
  series.knob = record.header.knobs.front();
  series.provenance = record.header.provenance;
  series.limits = record.header.limits;
  series.measurements = record.measurements;
  series.source = record.header.workload;
  return series;
}

std::vector<Series> all_series(const Record& record) {
  std::vector<Series> all;
  if (record.header.knobs.size() == 1) {
    return {to_series(record)};
  }
  Series empty = to_series(record);
  empty.measurements.clear();
  for (const Measurement& each : record.measurements) {
    Labels labels = record.header.labels;
    for (const auto& [knob, value] : each.setting.values()) {
      if (knob != empty.knob.name) {
        std::erase_if(labels, [&name = knob](const auto& pair) { return pair.first == name; });
        labels.emplace_back(knob, text(value));
      }
    }
    auto own = std::find_if(all.begin(), all.end(), [&labels](const Series& series) {
      return series.labels == labels;
    });
    if (own == all.end()) {
      all.push_back(empty);
      own = all.end() - 1;
      own->labels = labels;
    }
    own->measurements.push_back(each);
  }
  return all;
}

RecordWriter::RecordWriter(int descriptor, std::filesystem::path path)
    : descriptor_(descriptor), path_(std::move(path)) {}

RecordWriter::RecordWriter(RecordWriter&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

RecordWriter::~RecordWriter() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

Result<RecordWriter> RecordWriter::create(const std::filesystem::path& path,
                                          const RecordHeader& header) {
  constexpr mode_t kReadableByAll = 0644;
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kReadableByAll);
  if (descriptor < 0 && errno == EEXIST) {
    return bad_input(
        fmt::format("{} exists; --resume goes on with it, another --record leaves it alone",
                    path.string()));
  }
  if (descriptor < 0) {
    return cannot("write", path, errno);
  }
  RecordWriter writer(descriptor, path);
  if (const Result<void> done = writer.append_line(header_line(header)); !done) {
    ::unlink(path.c_str());
    return done.error();
  }
  sync_folder(path);
  return writer;
}

Result<RecordWriter> RecordWriter::resume(const std::filesystem::path& path,
                                          const RecordHeader& header,
                                          Record& record) {
  const Result<std::string> text = read_text(path);
  if (!text) {
    return text.error();
  }
  // Whole lines only: what follows the last line end was half written.
  const std::size_t keep = text->rfind('\n') + 1;
  if (keep == 0 && looks_like_record(*text)) {
    return bad_input(fmt::format(
        "cannot resume {}: its first line is half written; remove it and start anew",
        path.string()));
  }
  const std::string_view whole =
      std::string_view(*text).substr(0, keep > 0 ? keep : text->size());
  Result<Record> found = parse_record(whole, path.string());
  if (!found) {
    return found.error();
  }
  // As it would be read: a command need not be UTF-8, a record is.
  const Result<RecordHeader> wanted = parse_header_line(header_line(header), path.string());
  if (!wanted) {
    return wanted.error();
  }
  if (const std::string why = difference(found->header, *wanted); !why.empty()) {
    return bad_input(fmt::format("cannot resume {}: {}", path.string(), why));
  }
  const int descriptor = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) {
    return cannot("write", path, errno);
  }
  RecordWriter writer(descriptor, path);
  found->dropped_last_line = keep < text->size();
  if (found->dropped_last_line && ::ftruncate(descriptor, static_cast<off_t>(keep)) != 0) {
    return cannot("cut the half-written last line of", path, errno);
  }
  record = std::move(*found);
  return writer;
}

Result<void> RecordWriter::append(const Measurement& measurement) {
  const Result<void> done = append_line(measurement_line(measurement));
  if (done) {
    return {};
  }
  Error error = done.error();
  error.message += "; what was recorded before stands, and --resume goes on from there";
  return error;
}

// A line that cannot be written whole is cut off again.
Result<void> RecordWriter::append_line(const std::string& line) {
  if (line.size() > kLongestLine) {
    return bad_input(
        fmt::format("cannot write {}: the line has {} bytes; no record has lines "
                    "over {}",
                    path_.string(), line.size(), kLongestLine));
  }
  struct stat before {};
  if (::fstat(descriptor_, &before) != 0) {
    return cannot("write", path_, errno);
  }
  const std::string whole = line + "\n";
  std::size_t written = 0;
  int why = 0;
  while (written < whole.size() && why == 0) {
    const ssize_t count = ::write(descriptor_, whole.data() + written, whole.size() - written);
    if (count > 0) {
      written += static_cast<std::size_t>(count);
    } else if (count < 0 && errno != EINTR) {
      why = errno;
    }
  }
  // Devices and pipes cannot be synced; everything else must be on disk.
  if (why == 0 && ::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) {
    why = errno;
  }
  if (why == 0) {
    return {};
  }
  // Should this fail, too, the half line stays and is dropped by whoever reads the record.
  [[maybe_unused]] const int cut = ::ftruncate(descriptor_, before.st_size);
  return cannot("write", path_, why);
}

}  // namespace halfwatt
