#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>

#include "fake_nvml/abi.h"
#include "fake_nvml/fake_nvml.h"

namespace halfwatt {

/// A program's view of NVML in the tests of the fake: loaded by name, initialised, and shut
/// down at the end.
class NvmlClient {
 public:
  explicit NvmlClient(NvmlVariant variant = NvmlVariant::modern);
  ~NvmlClient();
  NvmlClient(const NvmlClient&) = delete;
  NvmlClient& operator=(const NvmlClient&) = delete;

  bool has(const char* name) const { return find(name) != nullptr; }
  /// Calls `name` with exactly these types; function_not_found if there is no such symbol.
  template <class... Argument>
  fake_nvml::Return call(const char* name, Argument... arguments) const {
    using Function = fake_nvml::Return (*)(Argument...);
    const auto function = reinterpret_cast<Function>(find(name));
    return function != nullptr ? function(arguments...) : fake_nvml::Return::function_not_found;
  }
  /// What Init said.
  fake_nvml::Return init() const { return init_; }

  fake_nvml::Device device(std::uint32_t index = 0) const;
  /// The value of a getter with one place for it; nothing if it fails.
  template <class T>
  std::optional<T> get(const char* name, std::uint32_t index = 0) const {
    T value{};
    return call(name, device(index), &value) == fake_nvml::Return::success
               ? std::optional(value)
               : std::nullopt;
  }
  std::optional<std::uint32_t> limit_mw(std::uint32_t index = 0) const;
  fake_nvml::Return set_limit(std::uint32_t limit_mw, std::uint32_t index = 0) const;
  fake_nvml::FieldValue field(std::uint32_t id, std::uint32_t index = 0) const;
  std::optional<std::uint64_t> energy_mj() const;
  std::string text(const char* name, fake_nvml::Device device) const;

 private:
  void* find(const char* name) const;
  void* library_;
  fake_nvml::Return init_;
};

/// A forked process that runs `body` and ends with the status it returns.
template <class Body>
pid_t start_child(Body body) {
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(body());
  }
  return pid;
}
/// The waitpid status of a child, when it has ended.
int end_of(pid_t child);

}  // namespace halfwatt
