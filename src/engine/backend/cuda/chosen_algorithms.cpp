#include "engine/backend/cuda/chosen_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>

namespace halfwatt::cuda {
namespace {

constexpr std::size_t kBytes = sizeof(cublasLtMatmulAlgo_t);

std::string hex_of(const cublasLtMatmulAlgo_t& algorithm) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&algorithm);
  std::string text;
  for (std::size_t at = 0; at < kBytes; ++at) {
    text += fmt::format("{:02x}", bytes[at]);
  }
  return text;
}

std::optional<cublasLtMatmulAlgo_t> algorithm_of(std::string_view hex) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (hex.size() != 2 * kBytes || hex.find_first_not_of(kDigits) != std::string_view::npos) {
    return std::nullopt;
  }
  unsigned char bytes[kBytes];
  for (std::size_t at = 0; at < kBytes; ++at) {
    bytes[at] = static_cast<unsigned char>(kDigits.find(hex[2 * at]) * kDigits.size() +
                                           kDigits.find(hex[2 * at + 1]));
  }
  cublasLtMatmulAlgo_t algorithm;
  std::memcpy(&algorithm, bytes, kBytes);
  return algorithm;
}

}  // namespace

ChosenAlgorithms::ChosenAlgorithms(const std::string& machine,
                                   std::optional<std::filesystem::path> file)
    : machine_(machine), file_(std::move(file)) {
  if (!file_) {
    return;
  }
  const std::string begin = machine_ + ": ";
  std::ifstream in(*file_);
  for (std::string line; std::getline(in, line);) {
    const std::size_t space = line.rfind(' ');
    if (line.rfind(begin, 0) != 0 || space < begin.size()) {
      continue;
    }
    if (const auto algorithm = algorithm_of(std::string_view(line).substr(space + 1))) {
      chosen_.insert_or_assign(line.substr(begin.size(), space - begin.size()), *algorithm);
    }
  }
}

std::optional<cublasLtMatmulAlgo_t> ChosenAlgorithms::find(const std::string& product) const {
  const auto found = chosen_.find(product);
  return found == chosen_.end() ? std::nullopt : std::optional(found->second);
}

void ChosenAlgorithms::put(const std::string& product, const cublasLtMatmulAlgo_t& algorithm) {
  chosen_.insert_or_assign(product, algorithm);
  if (!file_) {
    return;
  }
  std::error_code failed;
  std::filesystem::create_directories(file_->parent_path(), failed);
  // One write of a whole line, which begins anew whatever was torn before it: another process
  // may add its own.
  std::ofstream out(*file_, std::ios::app);
  out << fmt::format("\n{}: {} {}\n", machine_, product, hex_of(algorithm)) << std::flush;
}

}  // namespace halfwatt::cuda
