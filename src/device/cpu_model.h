#pragma once

#include <filesystem>
#include <string>

namespace halfwatt {

/// What the processors of the machine are called; "CPU" where it does not say. `root` is "/"
/// but in tests.
std::string cpu_model(const std::filesystem::path& root = "/");

}  // namespace halfwatt
