#include "cli/train_request.h"

#include <fmt/format.h>

#include <array>

#include "cli/compute_device.h"
#include "cli/model_flags.h"

namespace halfwatt {
namespace {

// Reads numbers into a request and keeps the first thing that is wrong.
class Reader {
 public:
  explicit Reader(const Invocation& invocation) : invocation_(&invocation) {}

  template <class T>
  void whole(std::string_view option, T& value, double low, double high) {
    take(invocation_->whole(option, static_cast<double>(value), low, high), value);
  }
  void number(std::string_view option, double& value, double low, double high) {
    take(invocation_->number(option, value, low, high), value);
  }
  /// The place of a word among those that may stand there.
  template <std::size_t N>
  std::size_t word(std::string_view option,
                   const std::array<std::string_view, N>& words,
                   std::size_t otherwise) {
    const auto given = invocation_->get(option);
    for (std::size_t at = 0; at < N; ++at) {
      if (given && *given == words[at]) {
        return at;
      }
    }
    if (given) {
      fail(
          bad_input(fmt::format("{} {}: needed {}", option, *given, fmt::join(words, " or "))));
    }
    return otherwise;
  }
  void fail(const Error& error) { error_ = error_ ? error_ : error; }
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  void take(const Result<double>& read, T& value) {
    if (read) {
      value = static_cast<T>(*read);
    } else {
      fail(read.error());
    }
  }

  const Invocation* invocation_;
  std::optional<Error> error_;
};

constexpr double kMost = 1e9;

void read_optimizer(const Invocation& invocation, Reader& reader, TrainRequest& request) {
  Optimizer& optimizer = request.recipe.optimizer;
  optimizer.kind =
      reader.word("--optimizer", std::array<std::string_view, 2>{"adamw", "sgd"}, 0)
          ? Optimizer::Kind::sgd
          : Optimizer::Kind::adamw;
  constexpr std::array kSchedules = {Optimizer::Schedule::cosine, Optimizer::Schedule::linear,
                                     Optimizer::Schedule::constant};
  optimizer.schedule = kSchedules[reader.word(
      "--schedule", std::array<std::string_view, 3>{"cosine", "linear", "constant"}, 0)];
  reader.number("--lr", optimizer.rate, 0, 1e3);
  reader.number("--weight-decay", optimizer.decay, 0, 1e3);
  reader.number("--momentum", optimizer.momentum, 0, 1);
  reader.number("--adam-eps", optimizer.eps, 0, 1);
  reader.number("--clip", optimizer.max_norm, 0, kMost);
  reader.number("--ema", optimizer.average, 0, 0.999999);
  reader.number("--warmup-epochs", request.warmup_epochs, 0, kMost);
  reader.number("--layer-decay", request.recipe.layer_decay, 1e-3, 1);
  optimizer.no_decay = invocation.all("--no-decay");
  request.recipe.freeze = invocation.all("--freeze");
}

void read_data(const Invocation& invocation, Reader& reader, TrainRequest& request) {
  request.data = invocation.get("--data").value_or("");
  if (request.data.empty()) {
    reader.fail(
        bad_input("--data WHAT is missing: a folder with a folder of pictures for each "
                  "class, CIFAR's, a .csv of pixels, or synthetic:N"));
  }
  request.held_out = invocation.get("--val").value_or("");
  request.held_out_share = 0.1;
  reader.number("--hold-out", request.held_out_share, 0, 0.9);
  request.source.folder.order =
      reader.word("--class-order", std::array<std::string_view, 2>{"bytes", "natural"}, 0)
          ? ClassOrder::natural
          : ClassOrder::bytes;
  request.bad = reader.word("--bad-images", std::array<std::string_view, 2>{"stop", "skip"}, 0)
                    ? BadImages::skip
                    : BadImages::stop;
  request.caches =
      reader.word("--cache", std::array<std::string_view, 2>{"none", "ram"}, 0) == 1;
  request.augments =
      reader.word("--augment", std::array<std::string_view, 2>{"crop", "none"}, 0) == 0;
  reader.number("--least-area", request.augmentation.least_area, 1e-3, 1);
  reader.number("--flip", request.augmentation.flip, 0, 1);
  reader.whole("--side", request.source.pixels.side, 1, 16384);
  reader.whole("--channels", request.source.pixels.channels, 1, 3);
  reader.number("--largest", request.source.pixels.largest, 1e-9, kMost);
}

void read_model(const Invocation& invocation, Reader& reader, TrainRequest& request) {
  auto model = model_asked(invocation, "vit_tiny_patch16_224");
  auto precision = precision_asked(invocation);
  auto overrides = overrides_asked(invocation);
  if (!model || !precision || !overrides) {
    reader.fail(!model ? model.error() : !precision ? precision.error() : overrides.error());
    return;
  }
  request.recipe.model = std::move(*model);
  request.recipe.precision = std::move(*precision);
  request.recipe.overrides = std::move(*overrides);
  request.has_classes = invocation.has("--classes");
  reader.number("--drop-path", request.recipe.model.drop_path, 0, 0.99);
  reader.number("--dropout", request.recipe.model.dropout, 0, 0.99);
  reader.number("--smoothing", request.recipe.smoothing, 0, 0.99);
  request.weights = invocation.get("--weights").value_or("");
  request.fine_tuning.reset_head = invocation.has("--reset-head");
  request.fine_tuning.resize =
      true;  // a picture's size is the model's, whatever the file's was
}

void read_run(const Invocation& invocation, Reader& reader, TrainRequest& request) {
  reader.whole("--epochs", request.epochs, 1, kMost);
  reader.whole("--batch", request.recipe.batch, 1, 1 << 20);
  reader.whole("--accumulate", request.recipe.micro_batches, 1, 1 << 20);
  request.recipe.recompute = invocation.has("--recompute");
  reader.whole("--seed", request.recipe.seed, 0, kMost);
  request.out = invocation.get("--out").value_or("");
  request.dry_run = invocation.has("--dry-run");
  request.deterministic = invocation.has("--deterministic");
  if (request.out.empty() && !request.dry_run) {
    reader.fail(bad_input("--out DIR is missing: where checkpoints and logs go"));
  }
  reader.whole("--save-every", request.checkpoints.every, 0, kMost);
  reader.whole("--keep", request.checkpoints.keep, 1, kMost);
  request.resumes = invocation.has("--resume");
  request.json =
      reader.word("--format", std::array<std::string_view, 2>{"text", "jsonl"}, 0) == 1;
  if (auto device = compute_device_asked(invocation); device) {
    request.device = std::move(*device);
  } else {
    reader.fail(device.error());
  }
  reader.whole("--threads", request.threads, 0, 4096);
  reader.whole("--decode-threads", request.decode_threads, 0, 4096);
}

}  // namespace

std::vector<Option> train_options() {
  return {
      {"--data", "WHAT",
       "a folder with a folder of .jpg and .png files for each class (or train and val with "
       "these), CIFAR's folder, a .csv[.gz] of pixels, or synthetic:N"},
      {"--out", "DIR", "where checkpoints, the trained weights and logs go"},
      {"--model", "NAME", "timm's name of a ViT; default vit_tiny_patch16_224"},
      {"--classes", "N", "of the head; default as many as the data has"},
      {"--pool", "WHAT", "what the head sees: token (the default), or mean"},
      {"--weights", "FILE", "timm's weights to begin with; position embeddings are resized"},
      {"--reset-head", "", "the head begins anew, as for other classes"},
      {"--freeze", "PATTERN", "parameters that do not learn, as 'patch_embed.*'", true},
      {"--epochs", "N", "over all the data; 1"},
      {"--batch", "N", "images at once; 32"},
      {"--accumulate", "N", "batches of that many that make a step; 1"},
      {"--recompute", "", "blocks compute their activations again, for less memory"},
      precision_option(),
      {"--override", "PATTERN=MODE", "another precision for some layers, as 'head.*=fp32'",
       true},
      {"--optimizer", "KIND", "adamw (the default) or sgd"},
      {"--lr", "RATE", "at its highest; 0.001"},
      {"--schedule", "KIND", "cosine (the default), linear or constant, after the warm-up"},
      {"--warmup-epochs", "N", "in which the rate rises from 0; may be 0.5; 0"},
      {"--weight-decay", "X", "of matrices; 0.05"},
      {"--no-decay", "PATTERN", "parameters that do not decay either", true},
      {"--layer-decay", "X", "of the rate, from each block to the one below; 1"},
      {"--momentum", "X", "of sgd; 0.9"},
      {"--adam-eps", "X", "of adamw; 1e-8"},
      {"--clip", "NORM", "of all gradients together; 0, which is none"},
      {"--ema", "DECAY",
       "average the weights, and evaluate with the average; 0, which is none"},
      {"--smoothing", "X", "of labels; 0"},
      {"--drop-path", "X", "of the last block; 0"},
      {"--dropout", "X", "before the head; 0"},
      {"--val", "WHAT", "what is evaluated after each epoch, as --data"},
      {"--hold-out", "SHARE", "of each class where there is no such part; 0.1, and 0 for none"},
      {"--class-order", "ORDER", "bytes (torchvision's, the default) or natural (timm's)"},
      {"--bad-images", "POLICY", "stop (the default) or skip; each is named either way"},
      {"--cache", "WHERE", "none (the default), or ram: decoded pictures stay in memory"},
      {"--augment", "HOW", "crop (random crop and mirror, the default) or none"},
      {"--least-area", "SHARE", "of a picture, that a crop shows; 0.08"},
      {"--flip", "SHARE", "of pictures that are mirrored; 0.5"},
      {"--side", "N", "of pictures in a .csv; 8"},
      {"--channels", "N", "of pictures in a .csv, 1 or 3; 1"},
      {"--largest", "X", "pixel in a .csv; 16"},
      {"--save-every", "STEPS", "a checkpoint also within an epoch"},
      {"--keep", "N", "checkpoints, the latest, and the best one beside them; 1"},
      {"--resume", "", "go on from the last checkpoint in --out, to the same bits"},
      {"--seed", "N", "of everything that is random; 1"},
      compute_device_option(),
      deterministic_option(),
      {"--threads", "N", "that compute; default as many as this process may use"},
      {"--decode-threads", "N", "that decode pictures; default half of these, 1 at least"},
      {"--dry-run", "", "say what would be done, and what memory it takes"},
      {"--format", "FORMAT", "text (the default), or jsonl: a line for every step on stdout"},
  };
}

Result<TrainRequest> read_train_request(const Invocation& invocation) {
  TrainRequest request;
  Reader reader(invocation);
  if (!invocation.arguments().empty()) {
    reader.fail(bad_input(fmt::format("train: {} is no flag; pictures are named by --data",
                                      invocation.arguments()[0])));
  }
  read_model(invocation, reader, request);
  read_data(invocation, reader, request);
  read_optimizer(invocation, reader, request);
  read_run(invocation, reader, request);
  if (reader.error()) {
    return *reader.error();
  }
  return request;
}

}  // namespace halfwatt
