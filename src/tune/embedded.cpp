#include "tune/embedded.h"

namespace halfwatt {

// Written by halfwatt_embed() in CMakeLists.txt.
extern const std::string_view kStudyCsv;
extern const std::string_view kStudyNotes;
extern const std::string_view kStudyClaims;

std::string_view embedded_study_csv() { return kStudyCsv; }
std::string_view embedded_study_notes() { return kStudyNotes; }
std::string_view embedded_study_claims() { return kStudyClaims; }

}  // namespace halfwatt
