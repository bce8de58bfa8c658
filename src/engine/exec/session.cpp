#include "engine/exec/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "base/failure.h"

namespace halfwatt {
namespace {

// Devices of one process wait on each other by counting steps.
class StepCounts final : public StepProgress {
 public:
  StepCounts(std::size_t devices, const Session::OnStep& on_step)
      : on_step_(&on_step), done_(devices) {}

  void wait_for(const Wait& wait) override {
    std::unique_lock lock(mutex_);
    const int& done = done_[static_cast<std::size_t>(wait.device)];
    changed_.wait(lock, [&] { return given_up_ || done > wait.step; });
    if (given_up_ && done <= wait.step) {
      throw Failure({ErrorKind::device, "another device of the plan gave up"});
    }
  }

  void done(int device, int step) override {
    if (*on_step_) {
      (*on_step_)(device, step);
    }
    if (done_.size() == 1) {
      return;  // nobody waits
    }
    const std::lock_guard lock(mutex_);
    done_[static_cast<std::size_t>(device)] = step + 1;
    changed_.notify_all();
  }

  void give_up() {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    changed_.notify_all();
  }

 private:
  const Session::OnStep* on_step_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> done_;
  bool given_up_ = false;
};

}  // namespace

Result<std::unique_ptr<Session>> Session::open(std::vector<Plan> plans,
                                               std::vector<Backend*> backends,
                                               States& states) {
  for (const Backend* each : backends) {
    const DeviceId::Kind kind = each->target().id.kind;
    if (backends.size() > 1 && kind != DeviceId::Kind::cpu &&
        kind != DeviceId::Kind::simulated) {
      return bad_input(
          fmt::format("{} with another device: work on several devices is still to "
                      "come where one is a GPU",
                      each->target().name));
    }
  }
  try {
    std::unique_ptr<Session> session(new Session(std::move(backends), states));
    session->programs_.reserve(plans.size());
    for (Plan& plan : plans) {
      session->add(std::move(plan));
    }
    session->compile();
    return session;
  } catch (const Failure& failure) {
    return failure.error();
  }
}

void Session::add(Plan plan) {
  HALFWATT_CHECK(plan.devices.size() == backends_.size(), "a backend for each device");
  Program program;
  for (std::size_t device = 0; device < backends_.size(); ++device) {
    std::vector<StateSpec> specs;
    for (const int state : plan.devices[device].states) {
      specs.push_back(plan.graph.states()[static_cast<std::size_t>(state)]);
    }
    states_->ensure(specs, *backends_[device]);
  }
  for (const PlanInput& input : plan.inputs) {
    Backend& backend = *backends_[static_cast<std::size_t>(input.device)];
    const std::size_t bytes = input.type.bytes();
    const Buffer& buffer = program.inputs.emplace_back(backend.allocate(aligned(bytes)));
    program.feeds.push_back(input.fed_ahead ? backend.feed(buffer.data(), bytes) : nullptr);
  }
  for (const Node& node : plan.graph.nodes()) {
    if (node.op == Op::write) {
      program.written.push_back(node.attributes.word("state"));
    }
  }
  program.plan = std::move(plan);
  programs_.push_back(std::move(program));
}

void Session::compile() {
  for (std::size_t device = 0; device < backends_.size(); ++device) {
    std::size_t largest = 0;
    std::size_t numbers = 0;
    for (const Program& program : programs_) {
      largest = std::max(largest, program.plan.devices[device].arena);
      numbers = std::max(numbers, program.plan.devices[device].numbers);
    }
    arenas_.push_back(backends_[device]->allocate(largest));
    snapshots_.push_back(backends_[device]->snapshots(arenas_[device].data(), numbers));
  }
  for (Program& program : programs_) {
    for (std::size_t device = 0; device < backends_.size(); ++device) {
      Bound bound;
      bound.arena = arenas_[device].data();
      for (const StateSpec& state : program.plan.graph.states()) {
        bound.states.push_back(states_->has(state.name) ? states_->data(state.name) : nullptr);
      }
      for (const Buffer& input : program.inputs) {
        bound.inputs.push_back(input.data());
      }
      for (const Buffer& arena : arenas_) {
        bound.other_arenas.push_back(arena.data());
      }
      program.bound.push_back(std::move(bound));
    }
    for (std::size_t device = 0; device < backends_.size(); ++device) {
      program.executables.push_back(backends_[device]->compile(
          program.plan, static_cast<int>(device), program.bound[device]));
    }
  }
}

bool Session::has_input(int plan, std::string_view input) const {
  const auto& inputs = this->plan(plan).inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const PlanInput& each) { return each.name == input; });
}

void Session::bind(int plan, std::string_view input, const TensorView& value) {
  bind(plan, input, [&](const TensorView& to) {
    HALFWATT_CHECK(to.type == value.type, "an input of the type that the plan has");
    std::copy_n(value.data, value.bytes().size(), to.data);
  });
}

void Session::bind(int plan, std::string_view input, const Fill& fill) {
  const Program& program = programs_[static_cast<std::size_t>(plan)];
  for (std::size_t at = 0; at < program.plan.inputs.size(); ++at) {
    const PlanInput& each = program.plan.inputs[at];
    if (each.name == input) {
      if (const auto& feed = program.feeds[at]) {
        fill({each.type, feed->next().data()});
        feed->send();
        return;
      }
      const Tensor value(each.type);
      fill(value.view());
      backends_[static_cast<std::size_t>(each.device)]->upload(program.inputs[at].data(),
                                                               value.view().bytes());
      return;
    }
  }
  HALFWATT_CHECK(false, "an input that the plan has");
}

// A parameter that was changed behind its copy would be trained in vain.
void Session::check_copies(const Program& program) const {
  for (const StateSpec& state : program.plan.graph.states()) {
    HALFWATT_CHECK(state.role != StateRole::copy || states_->is_current(state.name),
                   "a copy of a parameter that is older than the parameter");
  }
}

void Session::note_written(const Program& program) {
  for (const std::string& name : program.written) {
    if (states_->spec(name).role != StateRole::copy) {
      states_->written(name);
    }
  }
  for (const std::string& name : program.written) {
    if (states_->spec(name).role == StateRole::copy) {
      states_->copied(name);
    }
  }
}

Result<void> Session::run_devices(const Program& program,
                                  const OnStep& on_step,
                                  const RunDevice& run_one) {
  check_copies(program);
  StepCounts counts(backends_.size(), on_step);
  std::mutex mutex;
  std::optional<Error> first;
  const auto give_up = [&](const Error& error) {
    const std::lock_guard lock(mutex);
    first = first ? first : error;
    counts.give_up();
  };
  // Whatever is thrown: the other devices wait for this one, and a thread must not leak it.
  const auto run_device = [&](std::size_t device) {
    try {
      run_one(device, counts);
    } catch (const Failure& failure) {
      give_up(failure.error());
    } catch (const std::exception& unforeseen) {
      give_up({ErrorKind::device, unforeseen.what()});
    }
  };
  std::vector<std::thread> others;
  for (std::size_t device = 1; device < backends_.size(); ++device) {
    others.emplace_back(run_device, device);
  }
  run_device(0);
  for (std::thread& each : others) {
    each.join();
  }
  if (first) {
    return *first;
  }
  note_written(program);
  return {};
}

Result<void> Session::run(int plan, const OnStep& on_step) {
  const Program& program = programs_[static_cast<std::size_t>(plan)];
  return run_devices(program, on_step, [&](std::size_t device, StepProgress& progress) {
    program.executables[device]->run(progress);
  });
}

Result<void> Session::start(int plan) {
  const Program& program = programs_[static_cast<std::size_t>(plan)];
  const auto ran = run_devices(program, {}, [&](std::size_t device, StepProgress& progress) {
    program.executables[device]->start(progress);
    snapshots_[device]->take();
  });
  if (ran) {
    started_.push_back(plan);
  }
  return ran;
}

Result<bool> Session::is_done() {
  try {
    return std::all_of(snapshots_.begin(), snapshots_.end(),
                       [](const auto& each) { return each->is_there(); });
  } catch (const Failure& failure) {
    return failure.error();
  }
}

Result<Session::Numbers> Session::take() {
  HALFWATT_CHECK(!started_.empty(), "a run that was started");
  try {
    Numbers numbers;
    numbers.plan_ = started_.front();
    numbers.results_ = &plan(numbers.plan_).results;
    for (const auto& each : snapshots_) {
      const auto bytes = each->oldest();
      numbers.bytes_.emplace_back(bytes.begin(), bytes.end());
      each->drop_oldest();
    }
    started_.pop_front();
    return numbers;
  } catch (const Failure& failure) {
    return failure.error();
  }
}

Tensor Session::Numbers::result(std::string_view name) const {
  for (const PlanResult& each : *results_) {
    if (each.name == name) {
      Tensor tensor(each.place.type);
      const auto& bytes = bytes_[static_cast<std::size_t>(each.device)];
      const std::size_t size = each.place.type.bytes();
      HALFWATT_CHECK(
          each.place.space == Place::Space::arena && each.place.offset + size <= bytes.size(),
          "a result that comes back with its run");
      std::copy_n(bytes.data() + each.place.offset, size, tensor.view().data);
      return tensor;
    }
  }
  HALFWATT_CHECK(false, "a result that the plan has");
  return {};
}

Tensor Session::result(int plan, std::string_view name) const {
  const Program& program = programs_[static_cast<std::size_t>(plan)];
  for (const PlanResult& each : program.plan.results) {
    if (each.name == name) {
      Tensor tensor(each.place.type);
      const auto device = static_cast<std::size_t>(each.device);
      backends_[device]->download(tensor.view().bytes(),
                                  address(each.place, program.bound[device]));
      return tensor;
    }
  }
  HALFWATT_CHECK(false, "a result that the plan has");
  return {};
}

}  // namespace halfwatt
