#pragma once

#include <cublasLt.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace halfwatt::cuda {

/// Which algorithm was the fastest for a product on a card, kept in a file so that the next run
/// takes the same one, and computes the same bits. Lines of what they are for and 64 bytes in
/// hex; those that are not such are passed over, and a file that cannot be read or written is
/// as good as none.
class ChosenAlgorithms {
 public:
  /// `machine`: library and card. `file`: nullopt keeps nothing.
  ChosenAlgorithms(const std::string& machine, std::optional<std::filesystem::path> file);

  /// nullopt if none was chosen yet.
  std::optional<cublasLtMatmulAlgo_t> find(const std::string& product) const;
  /// Takes a choice, and adds it to the file if it can.
  void put(const std::string& product, const cublasLtMatmulAlgo_t& algorithm);

 private:
  std::string machine_;
  std::optional<std::filesystem::path> file_;
  std::map<std::string, cublasLtMatmulAlgo_t> chosen_;
};

}  // namespace halfwatt::cuda
