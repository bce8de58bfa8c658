#include "measure/output_tail.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace halfwatt {
namespace {

constexpr std::size_t kKept = 16384;  // a Python traceback with its last words fits
constexpr std::size_t kLongestLine = 160;

// One printed line without what moves the cursor or rings the bell.
std::string readable(std::string_view line) {
  std::string clean;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto c = static_cast<unsigned char>(line[i]);
    if (c == 0x1b && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) {
        ++i;
      }
    } else if (c >= 0x20 && c < 0x7f) {
      clean += static_cast<char>(c);
    } else if (c >= 0x80) {
      clean += clean.ends_with('?') ? "" : "?";  // bytes of unknown encoding
    }
  }
  const std::size_t begin = clean.find_first_not_of(' ');
  const std::size_t end = clean.find_last_not_of(' ');
  clean = begin == std::string::npos ? "" : clean.substr(begin, end - begin + 1);
  return clean.size() > kLongestLine ? clean.substr(0, kLongestLine) + "..." : clean;
}

}  // namespace

void OutputTail::add(std::string_view bytes) {
  if (bytes.size() >= kKept) {
    kept_ = bytes.substr(bytes.size() - kKept);
    return;
  }
  kept_ += bytes;
  if (kept_.size() > 2 * kKept) {
    kept_.erase(0, kept_.size() - kKept);
  }
}

std::string OutputTail::last_line() const {
  std::string_view rest = kept_;
  while (!rest.empty()) {
    const std::size_t at = rest.find_last_of("\n\r");
    const std::string line =
        readable(at == std::string_view::npos ? rest : rest.substr(at + 1));
    if (!line.empty()) {
      return line;
    }
    rest = rest.substr(0, at == std::string_view::npos ? 0 : at);
  }
  return "";
}

bool OutputTail::tells_out_of_memory() const {
  // PyTorch, CUDA, cuDNN and cuBLAS, JAX and TensorFlow, Python, C++, libc: as they print it.
  constexpr std::array kWords = {
      "out of memory",          "outofmemory", "cuda_error_out_of_memory",
      "alloc_failed",           "memoryerror", "resource_exhausted",
      "cannot allocate memory", "bad_alloc",   "cudaerrormemoryallocation"};
  std::string lower = kept_;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kWords.begin(), kWords.end(), [&lower](const char* words) {
    return lower.find(words) != std::string::npos;
  });
}

}  // namespace halfwatt
