#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <utility>

#include "base/remark.h"
#include "cli/bench_table.h"
#include "cli/compute_device.h"
#include "cli/interruptions.h"
#include "cli/model_flags.h"
#include "cli/output.h"
#include "cli/processor_rates.h"
#include "cli/record_file.h"
#include "device/devices.h"
#include "device/unmetered_cpu.h"
#include "engine/backend/cpu/kernels/available_threads.h"
#include "engine/passes/preflight.h"
#include "engine/train/trainer.h"
#include "report/progress_line.h"
#include "tune/grid_search.h"
#include "tune/tuner.h"
#include "workloads/engine_workload.h"
#include "workloads/infer_task.h"
#include "workloads/product_task.h"
#include "workloads/train_task.h"

namespace halfwatt {
namespace {

constexpr std::string_view kUsualModel = "vit_tiny_patch16_224";
constexpr double kUsualSeconds = 5;
constexpr int kVeryWide = 1000;  // the rows are for looking across

/// What is measured, read from the command line.
struct Asked {
  bool is_op = false;                   ///< a product, not a model's steps
  std::optional<ProductShape> product;  ///< absent with is_op: all of the model's
  ModelChoice choice;
  bool trains = true;
  std::vector<GridAxis> axes;
  std::vector<Precision> precisions;
  DeviceId device;
  bool deterministic = false;
  int threads = 0;
  double seconds = kUsualSeconds;
};

Result<void> read_precisions(const Invocation& invocation, Asked& asked) {
  auto precisions = precisions_asked(invocation);
  if (!precisions) {
    return precisions.error();
  }
  asked.precisions = std::move(*precisions);
  GridAxis axis{model_knobs()[0], {}};
  for (const Precision& precision : asked.precisions) {
    axis.values.emplace_back(precision.name);
  }
  asked.axes.push_back(std::move(axis));
  return {};
}

Result<void> read_batches(const Invocation& invocation, Asked& asked) {
  constexpr double kUsualBatch = 16;
  constexpr double kMost = 1 << 20;
  const auto batches = invocation.numbers("--batch", {kUsualBatch});
  if (!batches) {
    return batches.error();
  }
  GridAxis axis{model_knobs()[1], {}};
  for (const double batch : *batches) {
    if (batch != std::floor(batch) || batch < 1 || batch > kMost) {
      return bad_input(
          fmt::format("--batch {:g}: needed whole numbers of 1 to {:g}", batch, kMost));
    }
    if (std::find(axis.values.begin(), axis.values.end(), KnobValue(batch)) ==
        axis.values.end()) {
      axis.values.emplace_back(batch);
    }
  }
  asked.axes.push_back(std::move(axis));
  return {};
}

Result<void> read_model(const Invocation& invocation, Asked& asked) {
  auto model = model_asked(invocation, std::string(kUsualModel));
  if (!model) {
    return model.error();
  }
  asked.choice.model = std::move(*model);
  const std::string mode = invocation.get("--mode").value_or("train");
  if (mode != "train" && mode != "infer") {
    return bad_input(fmt::format("--mode {}: needed train or infer", mode));
  }
  asked.trains = mode == "train";
  return read_batches(invocation, asked);
}

// `bench op matmul MxKxN`, or `bench op matmul --model NAME`.
Result<void> read_op(const Invocation& invocation, Asked& asked) {
  const auto& words = invocation.arguments();
  const bool of_model = words.size() == 2 && invocation.has("--model");
  if ((words.size() != 3 && !of_model) || words[0] != "op" || words[1] != "matmul") {
    return bad_input(
        fmt::format("bench {}: needed nothing, or op matmul MxKxN, or op matmul --model NAME",
                    fmt::join(words, " ")));
  }
  asked.is_op = true;
  if (of_model) {
    const auto read = read_model(invocation, asked);
    if (read && asked.axes.back().values.size() > 1) {
      return bad_input("--batch with bench op: needed one");
    }
    return read;
  }
  for (const char* flag : {"--model", "--mode", "--batch", "--classes"}) {
    if (invocation.has(flag)) {
      return bad_input(fmt::format("{} with bench op matmul MxKxN, which has no model", flag));
    }
  }
  const auto shape = product_shape(words[2]);
  if (!shape) {
    return shape.error();
  }
  asked.product = *shape;
  return {};
}

// What cannot learn is told before it runs; what is certain to die runs only on request.
Result<void> preflight_all(const Invocation& invocation, const Asked& asked) {
  for (const Precision& precision : asked.precisions) {
    const Preflight found = preflight(precision, TrainRecipe().optimizer);
    if (found.dies && !invocation.has("--allow-dead")) {
      return bad_input(
          fmt::format("{}; --allow-dead runs it all the same", found.reasons.front()));
    }
    for (const std::string& reason : found.reasons) {
      remark(reason);
    }
  }
  return {};
}

Result<Asked> read(const Invocation& invocation) {
  Asked asked;
  const std::string format = invocation.get("--format").value_or("table");
  if (format != "table" && format != "csv" && format != "json") {
    return bad_input(fmt::format("--format {}: needed table, csv or json", format));
  }
  if (const auto done = read_precisions(invocation, asked); !done) {
    return done.error();
  }
  const auto subject = invocation.arguments().empty() ? read_model(invocation, asked)
                                                      : read_op(invocation, asked);
  if (!subject) {
    return subject.error();
  }
  if (!asked.is_op && asked.trains) {
    if (const auto fine = preflight_all(invocation, asked); !fine) {
      return fine.error();
    }
  }
  constexpr double kMostThreads = 4096;
  const auto threads = invocation.whole("--threads", 0, 1, kMostThreads);
  constexpr double kMostSeconds = 3600;
  const auto seconds = invocation.number("--seconds", kUsualSeconds, 0.1, kMostSeconds);
  if (!threads || !seconds) {
    return threads ? seconds.error() : threads.error();
  }
  auto device = compute_device_asked(invocation);
  if (!device) {
    return device.error();
  }
  asked.device = std::move(*device);
  asked.deterministic = invocation.has("--deterministic");
  asked.threads = *threads > 0 ? static_cast<int>(*threads) : cpu::available_threads();
  asked.seconds = *seconds;
  return asked;
}

// A processor without a meter has its load and its memory all the same.
Result<std::unique_ptr<Device>> meter_of(const DeviceId& id, const Clock& clock) {
  auto meter = open_meter(id, clock);
  if (meter || id.kind != DeviceId::Kind::cpu) {
    return meter;
  }
  remark(fmt::format("{}; watts and joules are unknown", meter.error().message));
  return Result<std::unique_ptr<Device>>(std::make_unique<UnmeteredCpu>(usual_places().root));
}

// How long steps will take is predicted from rates that are measured once; so far of processors
// alone.
Result<OpRates> rates_of(const Asked& asked, Backend& backend, bool fresh) {
  return asked.device.kind == DeviceId::Kind::cpu
             ? processor_rates(backend, asked.threads, asked.precisions, fresh)
             : OpRates();
}

// Processors have no heat sink to wait for here, and others use them too: single steps look
// uneven where their speed over half a second is steady.
MeterRules rules_of(const Asked& asked) {
  MeterRules rules;
  rules.warm_up = {Seconds(1), Seconds(10), Seconds(0.5), 0.05, 0.5};
  rules.settle = {Seconds(0.5), Seconds(5), Seconds(0.5), 0.05, 0.5};
  rules.window.min_duration = Seconds(asked.seconds);
  rules.window.stretch = Seconds(0.5);
  return rules;
}

RecordHeader header_of(const Device& device, const Workload& workload, const Asked& asked) {
  RecordHeader header;
  header.device_id = device.info().id.text();
  header.device = device.info().name;
  header.provenance = Provenance::measured;
  header.workload = workload.info().name;
  header.labels = workload.info().labels;
  header.labels.emplace_back("threads", fmt::format("{}", asked.threads));
  header.knobs = workload.knobs();
  return header;
}

// Of several products those that the device refuses are left out and named; nothing is measured
// where it refuses all.
Result<std::vector<LeftOut>> leave_out_refused(GridSearch& search, const EngineTask& task) {
  std::vector<LeftOut> all;
  for (const Setting& setting : search.settings()) {
    if (std::string reason = task.why_refused(setting); !reason.empty()) {
      all.push_back({setting, std::move(reason)});
    }
  }
  for (const LeftOut& each : all) {
    search.leave_out(each.setting);
  }
  if (search.settings().empty()) {
    return bad_input(fmt::format("{}: the device computes none of it: {}", task.info().name,
                                 text(all.front())));
  }
  return all;
}

// Every setting is planned before the first one runs, so that a mistake ends no long run.
Result<void> check_settings(const GridSearch& search, const EngineTask& task) {
  for (const Setting& setting : search.settings()) {
    if (const auto predicted = task.predict(setting); !predicted) {
      return predicted.error();
    }
  }
  return {};
}

Result<void> measure(const Asked& asked,
                     const GridSearch& search,
                     TunerParts parts,
                     RecordFile& file) {
  handle_interruptions();
  const SteadyClock wall;
  ProgressLine progress(wall, std::cerr, stderr_progress_style());
  Tuner tuner(std::move(parts), rules_of(asked), interruption_is_asked);
  return tuner.run(search, file.measured, [&](const Measurement& latest) -> Result<void> {
    progress.update({static_cast<double>(file.measured.size()),
                     static_cast<double>(search.expected_windows()), text(latest.setting)});
    return file.writer ? file.writer->append(latest) : Result<void>();
  });
}

Result<void> show_rows(const Invocation& invocation,
                       const RecordHeader& header,
                       const std::vector<Measurement>& rows,
                       const std::vector<LeftOut>& left_out) {
  const std::string format = invocation.get("--format").value_or("table");
  if (format == "json") {
    return print(bench_json(header, rows, left_out));
  }
  if (format == "csv") {
    for (const LeftOut& each : left_out) {
      remark("left out: " + text(each));
    }
    return print(bench_csv(header, rows));
  }
  Document document = bench_document(header, rows, left_out);
  for (const std::string& loss : narrow_losses(rows)) {
    document.blocks.push_back(Note{loss, false});
  }
  return print(for_stdout(document, kVeryWide));
}

// Nothing that was measured can be used: a script learns it from the exit status.
Result<void> judge(const RecordHeader& header, const std::vector<Measurement>& rows) {
  if (std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.counts(); })) {
    return {};
  }
  const bool dead = std::any_of(rows.begin(), rows.end(), [](const Measurement& row) {
    return row.numerical_state == NumericalState::dead;
  });
  return Error{ErrorKind::workload,
               fmt::format("{}: no row counts{}", header.workload,
                           dead ? ": the network is dead (its numbers are not finite)"
                                : ": their notes say why")};
}

// The batch of the model is one for all of its products; the shape takes the place of its axis.
Result<std::unique_ptr<EngineTask>> products_task(Asked& asked, EngineDevice device) {
  const double batch = std::get<double>(asked.axes.back().values.front());
  auto shapes =
      products_of(asked.choice, asked.trains, std::llround(batch), device.backend->target());
  if (!shapes) {
    return shapes.error();
  }
  GridAxis axis{shape_knob(), {}};
  for (const ProductShape& shape : *shapes) {
    axis.values.emplace_back(text(shape));
  }
  asked.axes.pop_back();
  asked.axes.insert(asked.axes.begin(), std::move(axis));
  std::string name = fmt::format("{}, {}, batch {:g}", asked.choice.model.name,
                                 asked.trains ? "train" : "infer", batch);
  return product_task(std::move(*shapes), std::move(name), std::move(device));
}

Result<std::unique_ptr<EngineTask>> task_of(Asked& asked, EngineDevice device) {
  if (asked.is_op) {
    return asked.product ? product_task(*asked.product, std::move(device))
                         : products_task(asked, std::move(device));
  }
  return asked.trains ? train_task(asked.choice, std::move(device))
                      : infer_task(asked.choice, std::move(device));
}

Result<void> run(const Invocation& invocation) {
  auto asked = read(invocation);
  if (!asked) {
    return asked.error();
  }
  const auto backend = open_backend(asked->device, asked->threads, asked->deterministic);
  if (!backend) {
    return backend.error();
  }
  const auto rates = rates_of(*asked, **backend, invocation.has("--fresh-probes"));
  if (!rates) {
    return rates.error();
  }
  auto task = task_of(*asked, {backend->get(), *rates});
  if (!task) {
    return task.error();
  }
  GridSearch search(asked->axes, std::make_unique<RepeatedSearch>(1));
  const auto left_out = leave_out_refused(search, **task);
  if (!left_out) {
    return left_out.error();
  }
  if (const auto fine = check_settings(search, **task); !fine) {
    return fine.error();
  }
  SteadyClock clock;
  const auto device = meter_of(asked->device, clock);
  if (!device) {
    return device.error();
  }
  EngineWorkload workload(std::move(*task), clock, (*backend)->target().memory);
  const RecordHeader header = header_of(**device, workload, *asked);
  auto file = open_record(invocation, header);
  if (!file) {
    return file.error();
  }
  if (const auto done = measure(*asked, search, {clock, **device, workload}, *file); !done) {
    return done.error();
  }
  const std::vector<Measurement> rows = bench_rows(file->measured);
  const auto shown = show_rows(invocation, header, rows, *left_out);
  return shown ? judge(header, rows) : shown;
}

}  // namespace

Command bench_command() {
  Command command;
  command.name = "bench";
  command.summary = "measure the engine's own steps";
  command.arguments = "[op matmul [MxKxN]]";
  command.description =
      "Measures training steps or forward passes of a model on this machine's processors or on "
      "a card, on random data, for every precision and batch of the lists; or one product of "
      "matrices, or with --model all that a step of it has, and then in which of them narrow "
      "formats are no faster. A "
      "row has step time (median, 5 and 95 %, 95 % interval of the median), speed, watts and "
      "joules where the machine has a meter, bytes of the plan and of the process, FLOPs, the "
      "time that the plan predicts from rates measured once on this machine, and whether the "
      "numbers are live. A dead network has no figures. Fewer than 20 steps are no window, "
      "however long they take.";
  command.options = {
      {"--model", "NAME", "timm's name of a ViT; default vit_tiny_patch16_224"},
      {"--mode", "MODE", "train (the default) or infer"},
      {"--precision", "LIST",
       "modes, as in fp32,amp-bf16; default fp32; `halfwatt plan --help` lists them"},
      {"--batch", "LIST", "images at once, as in 16,32; default 16"},
      {"--classes", "N", "of the model's head; default 1000"},
      {"--allow-dead", "", "train in modes whose numbers are certain to die, too"},
      compute_device_option(),
      deterministic_option(),
      {"--threads", "N", "default: as many as the machine lets this process use"},
      {"--seconds", "S", "least time of a row; default 5"},
      {"--fresh-probes", "", "measure the rates again that predicted times come from"},
      {"--record", "FILE.jsonl", "write every window here as it ends (docs/record.md)"},
      {"--resume", "", "go on with the record if it exists"},
      {"--format", "FORMAT", "table (the default), csv or json"},
  };
  command.examples = {
      {"halfwatt bench --mode infer --precision fp32,amp-bf16 --batch 8,32",
       "is bf16 worth it here, and at which batch?"},
      {"halfwatt bench op matmul 3152x192x768 --precision fp32,bf16 --format csv",
       "one product of vit_tiny, for a spreadsheet"},
      {"halfwatt bench op matmul --model vit_base_patch16_224 --precision fp32,bf16,fp8",
       "in which of its products do narrow formats not pay?"},
  };
  command.run = run;
  return command;
}

}  // namespace halfwatt
