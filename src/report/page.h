#pragma once

#include <string_view>

namespace halfwatt {

/// page.html with its style, scripts, Chart.js and licence in place, embedded at build time; it
/// has the slots {{title}}, {{header}}, {{body}} and {{charts}}, in this order.
extern const std::string_view kPageHtml;

}  // namespace halfwatt
