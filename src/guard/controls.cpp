#include "guard/controls.h"

#include <fmt/format.h>

#include <cstdlib>

#include "guard/file_limit.h"
#include "guard/nvml_limit.h"

namespace halfwatt {

Result<std::unique_ptr<LimitControl>> LimitControls::open(const std::string& card) {
  if (card.starts_with(FileLimit::kPrefix)) {
    Result<LimitFile> file = LimitFile::open(card.substr(FileLimit::kPrefix.size()));
    if (!file) {
      return file.error();
    }
    return std::unique_ptr<LimitControl>(std::make_unique<FileLimit>(std::move(*file)));
  }
  if (!nvml_) {
    auto library = NvmlLibrary::open(NvmlLibrary::usual_path());
    if (!library) {
      return library.error();
    }
    nvml_ = std::move(*library);
  }
  return NvmlLimit::open(nvml_, card);
}

bool real_cards_are_here() {
  // Another library than the driver's own knows only cards that are not there.
  return std::getenv("HALFWATT_NVML") == nullptr;
}

bool is_shared_card(const std::string& card) {
  return !card.starts_with(FileLimit::kPrefix) && real_cards_are_here();
}

}  // namespace halfwatt
