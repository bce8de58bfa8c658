#pragma once

#include <memory>
#include <utility>

#include "engine/backend/backend.h"

namespace halfwatt {

/// A backend that asks another for everything: a test overrides the one thing that is to be
/// otherwise.
class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<Backend> real) : real_(std::move(real)) {}

  const Target& target() const override { return real_->target(); }
  Buffer allocate(std::size_t bytes) override { return real_->allocate(bytes); }
  std::size_t allocated() const override { return real_->allocated(); }
  void upload(std::byte* to, std::span<const std::byte> from) override {
    real_->upload(to, from);
  }
  void download(std::span<std::byte> to, const std::byte* from) override {
    real_->download(to, from);
  }
  std::unique_ptr<Feed> feed(std::byte* to, std::size_t bytes) override {
    return real_->feed(to, bytes);
  }
  std::unique_ptr<Snapshots> snapshots(const std::byte* from, std::size_t bytes) override {
    return real_->snapshots(from, bytes);
  }
  std::unique_ptr<Executable> compile(const Plan& plan,
                                      int device,
                                      const Bound& bound) override {
    return real_->compile(plan, device, bound);
  }

 private:
  std::unique_ptr<Backend> real_;
};

}  // namespace halfwatt
