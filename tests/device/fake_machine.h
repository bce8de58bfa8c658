#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "device/devices.h"
#include "fake_nvml/fake_nvml.h"

namespace halfwatt {

/// A machine with fake cards and its own /proc and /sys: NVML over the real dlopen path.
class FakeMachine {
 public:
  explicit FakeMachine(fake_nvml::Script script = FakeNvml::cards(1),
                       NvmlVariant variant = NvmlVariant::modern)
      : nvml(std::move(script)), variant_(variant) {
    nvml.enter_environment(variant);
    const std::filesystem::path namespaces = root() / "proc/self/ns";
    std::filesystem::create_directories(namespaces);
    // As a process outside of containers sees it.
    std::filesystem::create_symlink("pid:[4026531836]", namespaces / "pid");
  }

  std::filesystem::path root() const { return nvml.folder() / "root"; }
  DevicePlaces places() const { return {FakeNvml::library(variant_), root()}; }
  Result<std::shared_ptr<const NvmlLibrary>> open_library() const {
    return NvmlLibrary::open(FakeNvml::library(variant_), root());
  }
  Result<std::unique_ptr<NvmlCard>> open_card(std::size_t card = 0) const {
    auto library = open_library();
    if (!library) {
      return library.error();
    }
    return NvmlCard::open(*library, uuid(card), root());
  }
  std::string uuid(std::size_t card = 0) const { return nvml.card(card).uuid; }

  FakeNvml nvml;

 private:
  NvmlVariant variant_;
};

/// Moves the fake's virtual clock wherever the reader sleeps.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(FakeNvml& nvml) : nvml_(&nvml) {}
  Seconds now() const override { return nvml_->now(); }
  void sleep_until(Seconds time) override {
    if (time > now()) {
      nvml_->advance(time - now());
    }
  }

 private:
  FakeNvml* nvml_;
};

/// A script of one card with one fault on a function.
inline fake_nvml::Script one_fault(const std::string& symbol, std::uint32_t code) {
  fake_nvml::Script script = FakeNvml::cards(1);
  fake_nvml::Fault fault;
  fault.symbol = symbol;
  fault.code = code;
  script.faults.push_back(fault);
  return script;
}

}  // namespace halfwatt
