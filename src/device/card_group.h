#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "device/device.h"

namespace halfwatt {

/// What a group of cards is wanted for.
enum class GroupUse {
  limited,   ///< one limit is set for all of them
  measured,  ///< limits are left alone
};

/// Several cards that one job uses, as one device. Energy, power and memory are sums; clocks
/// are the lowest, temperatures and fans the highest: the card that holds the others up. A
/// signal that one card does not tell is unknown.
///
/// One limit is for all: the requested one is the lowest, the enforced one that of the card
/// which differs most from it, so that a card which left the others shows. Times under a limit
/// or a throttle grow by the largest growth of any card between two readings.
///
/// Energy: reading a counter can take 4 ms, so only one card's is read until it ticks, and then
/// the others' at once: n cards cost one call, and n at an edge. The others' counters are then
/// as old as their own tick: a window of k ticks is off by at most (n - 1) / (n k), 4.4 % for 8
/// cards and 20 ticks, and by 0.41 sqrt(n - 1) / (n k), 0.7 %, where the phases are random.
class CardGroup final : public Device {
 public:
  /// `cards`: at least one. Errors: for one limit, that they do not take the same ones.
  static Result<std::unique_ptr<CardGroup>> make(std::vector<std::unique_ptr<Device>> cards,
                                                 GroupUse use);

  /// Its name is "4 x NVIDIA A100"; its id is that of all cards, separated by commas and in
  /// order, as --device takes it.
  const DeviceInfo& info() const override { return info_; }
  Result<Sample> read() override;
  Result<Sample> read_quickly() override;
  std::optional<Joules> energy() override;
  void take(const EnergyJudgement& judgement) override;

 private:
  explicit CardGroup(std::vector<std::unique_ptr<Device>> cards);
  Result<void> check_limits() const;
  void describe();
  Result<Sample> read_each(Result<Sample> (Device::*how)());
  Sample merge(const std::vector<Sample>& samples);
  std::optional<double> grow(SignalId id, const std::vector<Sample>& samples);
  std::optional<Joules> sum_up(const std::optional<Joules>& of_edge_card);

  std::vector<std::unique_ptr<Device>> cards_;
  DeviceInfo info_;
  std::vector<Sample> before_;  ///< of each card: times when they were last known
  Sample grown_;                ///< what the times of the group have grown to
  std::size_t edge_card_ = 0;   ///< whose ticks are the group's
  std::vector<std::optional<Joules>> counters_;  ///< as last seen
  std::optional<Joules> total_;
};

}  // namespace halfwatt
