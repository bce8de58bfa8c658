#include "workloads/model_choice.h"

#include <fmt/format.h>

namespace halfwatt {

WorkloadInfo info_of(const ModelChoice& choice, std::string_view mode) {
  WorkloadInfo info;
  info.name = fmt::format("{} {}", choice.model.name, mode);
  info.labels = {{"model", choice.model.name},
                 {"mode", std::string(mode)},
                 {"classes", fmt::format("{}", choice.model.classes)}};
  info.unit = "image";
  return info;
}

}  // namespace halfwatt
