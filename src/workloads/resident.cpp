#include "workloads/resident.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace halfwatt {

void give_back_free_memory() { ::malloc_trim(0); }

bool restart_resident_peak() {
  give_back_free_memory();
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;  // proc(5): resets VmHWM to what is resident now
  return file.good();
}

std::optional<Bytes> resident_peak() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    double kibibytes = 0;
    if (word == "VmHWM:" && file >> kibibytes) {
      return Bytes(kibibytes * 1024);
    }
  }
  return std::nullopt;
}

}  // namespace halfwatt
