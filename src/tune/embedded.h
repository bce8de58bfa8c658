#pragma once

#include <string_view>

namespace halfwatt {

/// The recorded RTX 3090 study that comes inside the program, so that it has something to show
/// on any machine: data/rtx3090_vit_b16.csv, its notes and the claims of its article.
std::string_view embedded_study_csv();
std::string_view embedded_study_notes();
std::string_view embedded_study_claims();

}  // namespace halfwatt
