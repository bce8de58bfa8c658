#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace halfwatt {

/// A regular expression of RE2 with named groups.
class Expression {
 public:
  /// What one line says; a view into it.
  struct Match {
    std::optional<std::string_view> step, total, loss, items, label, rate;
  };

  /// An expression of a user's: `flag` names it in errors. It has a group `needed`, or exactly
  /// one group, which then is it. Errors: bad input with RE2's reason.
  static Result<Expression> parse(std::string_view flag,
                                  const std::string& text,
                                  std::string_view needed);
  /// One of our own, known to be right. `is_closed`: it ends with a character that has to be
  /// there, so that a match at the end of half a line is a match.
  static Expression known(std::string_view text, bool is_closed);

  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  bool has_loss() const { return groups_.loss != 0; }
  /// The leftmost match in `line`. In half a line (not `is_whole`), one that more text could
  /// change is none.
  std::optional<Match> match(std::string_view line, bool is_whole) const;

 private:
  Expression(std::unique_ptr<re2::RE2> expression, bool is_closed);
  int group(const char* name) const;

  std::unique_ptr<re2::RE2> expression_;
  bool is_closed_;
  struct Groups {
    int step = 0, total = 0, loss = 0, items = 0, label = 0, rate = 0;  ///< 0: not there
  };
  Groups groups_;
};

}  // namespace halfwatt
