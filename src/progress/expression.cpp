#include "progress/expression.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <vector>

#include "base/check.h"

namespace halfwatt {
namespace {

RE2::Options options() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

Expression::Expression(std::unique_ptr<re2::RE2> expression, bool is_closed)
    : expression_(std::move(expression)), is_closed_(is_closed) {
  groups_ = {group("step"),  group("total"), group("loss"),
             group("items"), group("label"), group("rate")};
}

Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

int Expression::group(const char* name) const {
  const auto& groups = expression_->NamedCapturingGroups();
  const auto found = groups.find(name);
  return found == groups.end() ? 0 : found->second;
}

Result<Expression> Expression::parse(std::string_view flag,
                                     const std::string& text,
                                     std::string_view needed) {
  auto compiled = std::make_unique<RE2>(text, options());
  if (!compiled->ok()) {
    return bad_input(fmt::format(
        "{} '{}': {}; needed an expression as RE2 takes it (no lookaround, no backreference)",
        flag, text, compiled->error()));
  }
  const bool has_it = compiled->NamedCapturingGroups().count(std::string(needed)) > 0;
  if (!has_it && compiled->NumberOfCapturingGroups() != 1) {
    return bad_input(fmt::format("{} '{}': no group is called {}; write (?P<{}>...) around it",
                                 flag, text, needed, needed));
  }
  Expression expression(std::move(compiled), false);
  if (!has_it) {
    (needed == "step" ? expression.groups_.step : expression.groups_.loss) = 1;
  }
  return expression;
}

Expression Expression::known(std::string_view text, bool is_closed) {
  auto compiled = std::make_unique<RE2>(re2::StringPiece(text.data(), text.size()), options());
  HALFWATT_CHECK(compiled->ok(), "an expression of our own is right");
  return Expression(std::move(compiled), is_closed);
}

std::optional<Expression::Match> Expression::match(std::string_view line, bool is_whole) const {
  const re2::StringPiece text(line.data(), line.size());
  std::vector<re2::StringPiece> found(
      static_cast<std::size_t>(expression_->NumberOfCapturingGroups()) + 1);
  if (!expression_->Match(text, 0, text.size(), RE2::UNANCHORED, found.data(),
                          static_cast<int>(found.size()))) {
    return std::nullopt;
  }
  const char* end = found[0].data() + found[0].size();
  if (!is_whole && !is_closed_ && end == line.data() + line.size()) {
    return std::nullopt;
  }
  const auto view = [&found](int index) -> std::optional<std::string_view> {
    const re2::StringPiece& piece = found[static_cast<std::size_t>(index)];
    if (index == 0 || piece.data() == nullptr) {
      return std::nullopt;
    }
    return std::string_view(piece.data(), piece.size());
  };
  return Match{view(groups_.step),  view(groups_.total), view(groups_.loss),
               view(groups_.items), view(groups_.label), view(groups_.rate)};
}

}  // namespace halfwatt
