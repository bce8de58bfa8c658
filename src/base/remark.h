#pragma once

#include <string_view>

namespace halfwatt {

/// Writes "halfwatt: TEXT" and a newline to standard error. Never fails and never raises: what
/// puts limits back must not end because nobody listens any more (a closed pipe, a terminal
/// that is gone, a full disk behind `2>`).
void remark(std::string_view text);

}  // namespace halfwatt
