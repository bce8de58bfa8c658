#pragma once

#include <string>
#include <string_view>

namespace halfwatt {

/// Lower case, with every run of other characters than letters and digits as one underscore,
/// "/" as "per" and "%" as "percent": "Throughput (img/s)" is "throughput_img_per_s". Names of
/// columns and labels are compared in this form.
std::string plain_name(std::string_view name);

/// Whether a label is a choice that may be made differently for the same job (precision, batch,
/// engine...), so that series which differ in it can be compared; a label that is not says
/// which job it was (workload, model, device, dataset, optimizer, concurrency...).
bool is_knob_label(std::string_view name);

}  // namespace halfwatt
