#include "measure/record.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure/record_json.h"

namespace halfwatt {
namespace {

constexpr std::size_t kLongestLine = 1U << 20U;   // a window's line is below 2 KiB
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

std::string difference(const RecordHeader& found, const RecordHeader& wanted) {
  const auto differ = [](std::string_view what, std::string_view a, std::string_view b) {
    return fmt::format("its {} is '{}', not '{}'", what, a, b);
  };
  if (found.device_id != wanted.device_id) {
    return differ("device", found.device_id, wanted.device_id);
  }
  if (found.workload != wanted.workload) {
    return differ("workload", found.workload, wanted.workload);
  }
  if (found.command != wanted.command) {
    return differ("command", fmt::format("{}", fmt::join(found.command, " ")),
                  fmt::format("{}", fmt::join(wanted.command, " ")));
  }
  if (found.knobs != wanted.knobs) {
    return "its knobs are others";
  }
  if (found.limits != wanted.limits) {
    return "the card's range of limits is another";
  }
  return {};
}

}  // namespace

bool looks_like_record(std::string_view text) {
  return !text.empty() && text.front() == '{';
}

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
    record.measurements.push_back(std::move(*measurement));
  }
  if (!have_header) {
    return bad_input(fmt::format("{}: the file is empty; needed a record", file));
  }
  return record;
}

Result<Record> read_record(const std::filesystem::path& path) {
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
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return parse_record(text, path.string());
}

Series to_series(const Record& record, const std::string& source) {
  Series series;
  series.labels = record.header.labels;
  series.device = record.header.device;
  series.knob = record.header.knobs.front();
  series.provenance = record.header.provenance;
  series.limits = record.header.limits;
  series.measurements = record.measurements;
  series.source = source;
  return series;
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
    return bad_input(fmt::format(
        "{} exists; --resume goes on with it, another --record leaves it alone", path.string()));
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
  Result<Record> found = read_record(path);
  if (!found) {
    return found.error();
  }
  if (const std::string why = difference(found->header, header); !why.empty()) {
    return bad_input(fmt::format("cannot resume {}: {}", path.string(), why));
  }
  const int descriptor = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) {
    return cannot("write", path, errno);
  }
  RecordWriter writer(descriptor, path);
  // Whole lines only: the last line end that is there.
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::size_t keep = text.rfind('\n') + 1;
  if (keep == 0) {
    return bad_input(fmt::format("cannot resume {}: its first line is half written; remove it "
                                 "and start anew",
                                 path.string()));
  }
  if (keep < text.size() && ::ftruncate(descriptor, static_cast<off_t>(keep)) != 0) {
    return cannot("cut the half-written last line of", path, errno);
  }
  // A last line that is whole but for its end was read, and is cut all the same.
  if (keep < text.size() && !found->dropped_last_line) {
    found->measurements.pop_back();
    found->dropped_last_line = true;
  }
  record = std::move(*found);
  return writer;
}

Result<void> RecordWriter::append(const Measurement& measurement) {
  return append_line(measurement_line(measurement));
}

Result<void> RecordWriter::append_line(const std::string& line) {
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
  const bool cut = ::ftruncate(descriptor_, before.st_size) == 0;
  Error error = cannot("write", path_, why);
  error.message += cut ? "; what was recorded before stands, and --resume goes on from there"
                       : "; what was recorded before stands";
  return error;
}

}  // namespace halfwatt
