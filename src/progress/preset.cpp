#include "progress/preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace halfwatt {
namespace {

// A bar of tqdm, its format of 4.x: `label:  45%|####      | 45/100 [00:01<00:02, 41.2it/s,
// loss=1]`. Numbers scaled by unit_scale (1.2k/5.0k) are too coarse to count and do not match.
#define HALFWATT_BAR(label)                                               \
  label R"(\s*(?:\d{1,3}%)?\|[^|]*\|\s*(?P<step>\d+)/(?P<total>\d+|\?) )" \
        R"(\[[^,\]]*, *(?P<rate>[^,\]]*)[,\]])"

constexpr std::string_view kBar = HALFWATT_BAR(R"((?P<label>[^|%]*?))");
constexpr std::string_view kBarWithoutLabel = HALFWATT_BAR(R"((?P<label>^))");
constexpr std::string_view kBarOfAnEpoch = HALFWATT_BAR(R"((?P<label>Epoch \d+(?:/\d+)?):)");
#undef HALFWATT_BAR

// The same where the total is not known: `label: 45it [00:01, 41.2it/s]`.
constexpr std::string_view kCount =
    R"(^\s*(?:(?P<label>[^|]*?): )?(?P<step>\d+) ?[A-Za-z]+ \[[^,\]]*, *(?P<rate>[^,\]]*)[,\]])";

#define HALFWATT_NUMBER \
  R"([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf(?:inity)?))"

// `loss=0.31`, `train_loss: 0.31`, `'loss': '0.31'`, `train_loss_step=0.31`; no val_loss, and
// no mean over an epoch, which stands still while the training goes on.
constexpr std::string_view kLoss =
    R"((?i)(?:^|[\s,{('"\[])(?:train(?:ing)?[_/ -]?)?loss(?:_step)?['"]?\s*[=:]\s*['"]?)"
    R"((?:tensor\()?(?P<loss>)" HALFWATT_NUMBER ")";
// The Trainer of Hugging Face prints a loss of 0 where it is NaN (its logging_nan_inf_filter),
// but not so the gradient. A gradient alone says little: loss scaling skips such steps all the
// time.
constexpr std::string_view kTrainerLossOfZero =
    R"('loss': '?0(?:\.0+)?'?, 'grad_norm': '?(?:nan|inf))";
constexpr std::string_view kTrainerEvaluation = R"('eval_loss': '?-?(?:nan|inf))";

#undef HALFWATT_NUMBER

constexpr std::array<std::string_view, 4> kNames = {"auto", "tqdm", "hf-trainer", "lightning"};

// How labels begin that are not the training's: whole words, and words that go on.
constexpr std::array<std::string_view, 5> kAsideWords = {"val", "eval", "test", "map",
                                                         "filter"};
constexpr std::array<std::string_view, 12> kAsideStems = {
    "sanity check", "validat", "evaluat", "testing",    "predict", "loading",
    "download",     "fetch",   "tokeniz", "generating", "saving",  "running tokeniz"};

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

Result<Preset> preset(std::string_view name) {
  if (std::ranges::find(kNames, name) == kNames.end()) {
    return bad_input(
        fmt::format("--progress {}: no preset; there are {}", name, fmt::join(kNames, ", ")));
  }
  Preset preset;
  if (name == "lightning") {
    preset.steps.push_back(Expression::known(kBarOfAnEpoch, true));
  } else if (name == "hf-trainer") {
    preset.steps.push_back(Expression::known(kBarWithoutLabel, true));
  } else {
    preset.steps.push_back(Expression::known(kBar, true));
    preset.steps.push_back(Expression::known(kCount, true));
  }
  preset.losses.push_back(Expression::known(kLoss, false));
  if (name == "auto" || name == "hf-trainer") {
    preset.alarms.push_back(Expression::known(kTrainerLossOfZero, true));
    preset.alarms.push_back(Expression::known(kTrainerEvaluation, true));
  }
  return preset;
}

bool counts_bytes(std::string_view rate) { return rate.ends_with("B/s"); }

bool is_aside(std::string_view label) {
  std::string small(label);
  std::ranges::transform(small, small.begin(), lower);
  const auto begins = [&small](std::string_view word) { return small.starts_with(word); };
  return std::ranges::any_of(kAsideStems, begins) ||
         std::ranges::any_of(kAsideWords, [&](std::string_view word) {
           return begins(word) &&
                  (small.size() == word.size() || !is_letter(small[word.size()]));
         });
}

}  // namespace halfwatt
