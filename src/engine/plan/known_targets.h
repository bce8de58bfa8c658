#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/plan/target.h"

namespace halfwatt {

/// Devices that plans can be made for without having them, in the order in which they are
/// listed to users; `cpu`, of which only the name is known here, is the last.
std::vector<std::string> known_targets();

/// The device that a user calls `name`: one of known_targets(), also with a number to tell two
/// apart (`t4:1`), or else a file as target_of_json() reads it. Errors: no such device or file;
/// the message lists what there is.
Result<Target> target_named(const std::string& name);

/// A device from JSON, as docs/targets.md describes: `name`, `memory_bytes`,
/// `flops_per_second` by precision, `bytes_per_second`; may be left out: `launch_s`,
/// `link_bytes_per_second`, `link_latency_s`, `workspace_bytes` of a product, `source`.
/// `where` begins error messages. Errors: no JSON, a field that is missing, unknown, of
/// another type, no positive number or more than 1e18.
Result<Target> target_of_json(std::string_view json, const std::string& where);

}  // namespace halfwatt
