#include "workloads/probe_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/cache_folder.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "halfwatt.probes/2";

std::optional<OpRates> rates_from(const Json& json) {
  OpRates rates;
  for (const auto& [name, rate] : json.items()) {
    OpRate& it = rates[name];
    for (const auto& [key, part] :
         {std::pair("launch_s", &it.launch), std::pair("row_s", &it.of_row),
          std::pair("flop_s", &it.of_flop), std::pair("byte_s", &it.of_byte)}) {
      *part = Seconds(rate.at(key).get<double>());
      if (!(*part >= Seconds(0)) || !std::isfinite(part->value())) {
        return std::nullopt;
      }
    }
  }
  return rates;
}

// "AMD EPYC avx512 2 threads" as part of a file's name.
std::string slug(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      name += static_cast<char>(std::tolower(byte));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name;
}

}  // namespace

ProbeCache::ProbeCache(std::string machine, std::optional<std::filesystem::path> file)
    : machine_(std::move(machine)), file_(std::move(file)) {
  read();
}

void ProbeCache::read() {
  if (!file_) {
    return;
  }
  std::ifstream in(*file_);
  const Json json = Json::parse(in, nullptr, false);
  try {
    if (json.is_discarded() || json.at("schema") != kSchema || json.at("machine") != machine_) {
      return;
    }
    for (const auto& [precision, rates] : json.at("rates").items()) {
      if (auto good = rates_from(rates)) {
        rates_[precision] = std::move(*good);
      }
    }
  } catch (const Json::exception&) {
    rates_.clear();  // not what we write
  }
}

std::optional<OpRates> ProbeCache::find(const std::string& precision) const {
  const auto found = rates_.find(precision);
  return found == rates_.end() ? std::nullopt : std::optional(found->second);
}

void ProbeCache::put(const std::string& precision, OpRates rates) {
  read();  // somebody else may have measured another precision meanwhile
  rates_[precision] = std::move(rates);
  write();
}

// Whole or not at all: somebody else may read it at the same time.
void ProbeCache::write() const {
  if (!file_) {
    return;
  }
  Json json = {{"schema", kSchema}, {"machine", machine_}, {"rates", Json::object()}};
  for (const auto& [precision, rates] : rates_) {
    Json& rows = json["rates"][precision] = Json::object();
    for (const auto& [name, rate] : rates) {
      rows[name] = {{"launch_s", rate.launch.value()},
                    {"row_s", rate.of_row.value()},
                    {"flop_s", rate.of_flop.value()},
                    {"byte_s", rate.of_byte.value()}};
    }
  }
  std::error_code failed;
  std::filesystem::create_directories(file_->parent_path(), failed);
  const std::filesystem::path half = fmt::format("{}.{}", file_->string(), ::getpid());
  std::ofstream out(half);
  out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
  const bool whole = out.good();
  out.close();
  if (whole) {
    std::filesystem::rename(half, *file_, failed);
  }
  if (!whole || failed) {
    std::filesystem::remove(half, failed);
  }
}

std::optional<std::filesystem::path> probe_file(const std::string& machine) {
  const auto folder = cache_folder();
  return folder ? std::optional(*folder / fmt::format("probes-{}.json", slug(machine)))
                : std::nullopt;
}

}  // namespace halfwatt
