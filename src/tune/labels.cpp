#include "tune/labels.h"

#include <algorithm>
#include <iterator>

namespace halfwatt {
namespace {

/// In plain_name()'s form. What is not here names the job: comparing two jobs by mistake is
/// worse than not comparing two settings.
constexpr std::string_view kKnobLabels[] = {
    "precision",
    "dtype",
    "amp",
    "tf32",
    "quantization",
    "batch",
    "batch_size",
    "batchsize",
    "bs",
    "global_batch",
    "global_batch_size",
    "micro_batch",
    "micro_batch_size",
    "items_per_step",
    "items_per_batch",
    "accumulation",
    "gradient_accumulation",
    "grad_accumulation",
    "grad_accum",
    "engine",
    "backend",
    "framework",
    "compile",
    "layout",
    "recompute",
    "checkpointing",
    "placement",
    "power_limit",
    "power_limit_w",
    "sm_clock",
    "sm_clock_mhz",
    "set_gr_clock_mhz",
    "mem_clock",
    "mem_clock_mhz",
    "memory_clock",
    "memory_clock_mhz",
};

}  // namespace

std::string plain_name(std::string_view name) {
  std::string plain;
  bool gap = false;
  const auto append = [&plain, &gap](std::string_view word, bool apart) {
    if ((gap || apart) && !plain.empty()) {
      plain += '_';
    }
    plain += word;
    gap = apart;
  };
  for (const char c : name) {
    if (c == '/') {
      append("per", true);
    } else if (c == '%') {
      append("percent", true);
    } else if (c >= 'A' && c <= 'Z') {
      append(std::string(1, static_cast<char>(c - 'A' + 'a')), false);
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0) {
      append({&c, 1}, false);  // bytes beyond ASCII are letters of some script
    } else {
      gap = true;
    }
  }
  return plain;
}

bool is_knob_label(std::string_view name) {
  return std::ranges::find(kKnobLabels, plain_name(name)) != std::end(kKnobLabels);
}

}  // namespace halfwatt
