#pragma once

#include <map>
#include <string>

namespace halfwatt {

/// Counts the calls of the driver that make the host wait or change what memory there is, of
/// all threads of the process, while it lives. Knows them from CUPTI, which one at a time may
/// use.
class DriverCalls {
 public:
  DriverCalls();
  ~DriverCalls();
  DriverCalls(const DriverCalls&) = delete;
  DriverCalls& operator=(const DriverCalls&) = delete;

  /// Why it counts nothing; "" where it does.
  const std::string& why_not() const { return why_not_; }
  /// By name, since the last call.
  std::map<std::string, int> taken();

 private:
  std::string why_not_;
  void* subscriber_ = nullptr;
};

}  // namespace halfwatt
