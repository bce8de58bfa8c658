#include "device/limit_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

namespace halfwatt {

// As the file holds it: native byte order, since it never leaves the machine.
struct LimitFile::Page {
  std::array<char, 8> magic;
  std::uint32_t min_mw;
  std::uint32_t max_mw;
  std::uint32_t preset_mw;  // 0: none
  std::atomic<std::uint32_t> limit_mw;
  std::atomic<std::uint32_t> writes;
};

namespace {

constexpr std::array<char, 8> kMagic = {'h', 'w', 'l', 'i', 'm', 'i', 't', '1'};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free,
              "a lock inside the file would die with the process that holds it");

std::uint32_t milliwatts(Watts watts) {
  return static_cast<std::uint32_t>(std::lround(watts.value() * 1000));
}
Watts watts(std::uint32_t limit_mw) { return Watts(limit_mw / 1000.0); }

Error file_error(const std::filesystem::path& path, const char* what) {
  return {ErrorKind::device,
          fmt::format("limit file {}: {}: {}", path.string(), what, std::strerror(errno))};
}

}  // namespace

Result<LimitFile> LimitFile::map(const std::filesystem::path& path, int file) {
  void* at = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int why = errno;
  ::close(file);  // the mapping stays
  errno = why;
  if (at == MAP_FAILED) {
    return file_error(path, "cannot map it");
  }
  return LimitFile(path, static_cast<Page*>(at));
}

Result<LimitFile> LimitFile::create(const std::filesystem::path& path,
                                    const LimitRange& range,
                                    Watts initial) {
  const bool fits = range.min > Watts(0) && range.min <= initial && initial <= range.max &&
                    range.max < Watts(4e6);  // of 32-bit milliwatts
  if (!fits) {
    return bad_input(fmt::format("limit file {}: {:g} W does not lie in {:g}-{:g} W",
                                 path.string(), initial.value(), range.min.value(),
                                 range.max.value()));
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) {
    return file_error(path, "cannot create it");
  }
  if (::ftruncate(file, sizeof(Page)) != 0) {
    const Error error = file_error(path, "cannot size it");
    ::close(file);
    return error;
  }
  Result<LimitFile> made = map(path, file);
  if (made) {
    Page& page = *made->page_;
    page.min_mw = milliwatts(range.min);
    page.max_mw = milliwatts(range.max);
    page.preset_mw = range.preset ? milliwatts(*range.preset) : 0;
    page.limit_mw = milliwatts(initial);
    page.writes = 0;
    page.magic = kMagic;
  }
  return made;
}

Result<LimitFile> LimitFile::open(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) {
    return file_error(path, "cannot open it");
  }
  struct stat status {};
  // Mapped beyond its end, a short file would be a SIGBUS instead of an error.
  if (::fstat(file, &status) != 0 || status.st_size != off_t{sizeof(Page)}) {
    ::close(file);
    return bad_input(fmt::format("{}: not a limit file", path.string()));
  }
  Result<LimitFile> opened = map(path, file);
  if (opened && opened->page_->magic != kMagic) {
    return bad_input(fmt::format("{}: not a limit file", path.string()));
  }
  return opened;
}

LimitFile::LimitFile(LimitFile&& other) noexcept
    : path_(std::move(other.path_)), page_(std::exchange(other.page_, nullptr)) {}

LimitFile& LimitFile::operator=(LimitFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(page_, other.page_);
  return *this;
}

LimitFile::~LimitFile() {
  if (page_ != nullptr) {
    ::munmap(page_, sizeof(Page));
  }
}

Watts LimitFile::limit() const { return watts(page_->limit_mw); }

LimitRange LimitFile::range() const {
  LimitRange range{watts(page_->min_mw), watts(page_->max_mw), std::nullopt};
  if (page_->preset_mw != 0) {
    range.preset = watts(page_->preset_mw);
  }
  return range;
}

Result<void> LimitFile::set(Watts limit) {
  const LimitRange range = this->range();
  // Asked the way that is false for NaN.
  if (!(limit >= range.min && limit <= range.max)) {
    return Error{
        ErrorKind::device,
        fmt::format("{}: {:g} W is out of range; the card takes {:g}-{:g} W", path_.string(),
                    limit.value(), range.min.value(), range.max.value())};
  }
  page_->limit_mw = milliwatts(limit);
  ++page_->writes;
  return {};
}

unsigned LimitFile::writes() const { return page_->writes; }

}  // namespace halfwatt
