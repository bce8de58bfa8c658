#include "report/terminal.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "report/odd_document.h"
#include "report/study_document.h"
#include "report/text_layout.h"

namespace halfwatt {
namespace {

int widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  int widest = 0;
  while (std::getline(lines, line)) {
    widest = std::max(widest, display_width(line));
  }
  return widest;
}

Document with(Block block) { return {"", "", {std::move(block)}}; }

/// What is left of coloured text when nobody understands the colours.
std::string without_colour(std::string text) {
  for (std::size_t at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b')) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  return text;
}

TEST(Terminal, renders_a_verdict_as_text_that_lines_up) {
  const Document document{
      "RTX 3090",
      "recorded",
      {Paragraph{"300 W instead of 390 W: 5 % slower, 19 % fewer joules."}, Heading{"Verdict"},
       Table{"Lowest limits",
             {{"series", false}, {"keeps 95 %"}, {"J/image"}},
             {{{"train tf32"}, {"320", Emphasis::good}, {"1.351"}},
              {{"train half", Emphasis::struck}, {"270", Emphasis::struck}, {"0.465"}},
              {{"énergie"}, {"1000"}, {""}}}},
       Note{"The half series was run with settings that killed the network when it was run "
            "again on other hardware.",
            true},
       Note{"No power was recorded."}, Heading{"Rows"},
       Table{"Raw rows", {{"limit"}}, {{{"150"}}}, true}}};
  EXPECT_EQ(render_terminal(document, {}), R"(RTX 3090 [recorded]
===================

300 W instead of 390 W: 5 % slower, 19 % fewer joules.

Verdict
-------

Lowest limits
series        keeps 95 %  J/image
────────────  ──────────  ───────
train tf32          320     1.351
~train half~       ~270~    0.465
énergie            1000
~x~ is struck out: it must not be used.

warning: The half series was run with settings that killed the network when it
         was run again on other hardware.
note: No power was recorded.
)");
}

TEST(Terminal, wraps_titles_then_shortens_text_where_a_table_is_too_wide) {
  const Table table{"",
                    {{"series", false}, {"keeps 95 %"}, {"least energy (W)"}},
                    {{{"inference fp16_half batch 2048"}, {"360"}, {"240"}}}};
  EXPECT_EQ(render_terminal(with(table), {.width = 50}),
            R"(                                             least
                                            energy
series                          keeps 95 %     (W)
──────────────────────────────  ──────────  ──────
inference fp16_half batch 2048         360     240
)");
  EXPECT_EQ(render_terminal(with(table), {.width = 40}),
            R"(                                   least
                           keeps  energy
series                      95 %     (W)
─────────────────────────  ─────  ──────
inference fp16_h…tch 2048    360     240
)");
}

TEST(Terminal, sets_a_table_that_cannot_fit_as_several_with_the_same_first_column) {
  Table table{"", {{"series", false}}, {{{"train"}}, {{"infer"}}}};
  for (int i = 0; i < 8; ++i) {
    table.columns.push_back({"column" + std::to_string(i)});
    table.rows[0].push_back({"11111"});
    table.rows[1].push_back({"2"});
  }
  EXPECT_EQ(render_terminal(with(table), {.width = 40}), R"(series  column0  column1  column2
──────  ───────  ───────  ───────
train     11111    11111    11111
infer         2        2        2

series  column3  column4  column5
──────  ───────  ───────  ───────
train     11111    11111    11111
infer         2        2        2

series  column6  column7
──────  ───────  ───────
train     11111    11111
infer         2        2
)");
}

TEST(Terminal, draws_the_first_charts_and_names_the_others) {
  Chart chart{"share", "Share of peak", {"limit (W)"}, {"share (%)"}, {}, {50}};
  chart.lines = {{"fp32", {{100, 0}, {200, 100, {}, {}, true}}},
                 {"half", {{100, 100}}, Emphasis::struck}};
  Document document = with(chart);
  document.blocks.push_back(chart);
  document.blocks.push_back(chart);
  EXPECT_EQ(render_terminal(document, {.width = 40}), R"(Share of peak
share (%)
      100 ┤                           aA
          │                         aa
          │                      aaa
          │                    aa
          │                 aaa
          │. . . . . . . aaa . . . . . .
          │            aa
          │         aaa
          │       aa
          │    aaa
          │  aa
        0 ┤aa
          └─────────────────────────────
           100       limit (W)       200
a fp32   capitals: recommended
1 more in the HTML report

chart: Share of peak (drawn in the HTML
       report)
chart: Share of peak (drawn in the HTML
       report)
)");
}

TEST(Terminal, says_the_same_with_and_without_colour) {
  Document document = study_document("data/rtx3090_vit_b16.csv");
  document.blocks.push_back(
      Table{"", {{"W"}}, {{{"1", Emphasis::good}}, {{"2", Emphasis::struck}}, {{" "}}}});
  const std::string plain = render_terminal(document, {});
  const std::string coloured = render_terminal(document, {.colour = true});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(coloured, plain);
  EXPECT_EQ(without_colour(coloured), plain);
}

TEST(Terminal, never_exceeds_its_width) {
  for (const int width : {40, 50, 60, 80, 120}) {
    const TerminalStyle style{.width = width, .plots = 100};
    EXPECT_LE(widest_line(render_terminal(study_document("data/rtx3090_vit_b16.csv"), style)),
              width);
    EXPECT_LE(widest_line(render_terminal(odd_document(), style)), width);
  }
}

TEST(Terminal, survives_tables_without_columns_or_rows) {
  EXPECT_EQ(render_terminal(with(Table{"Empty", {{"a"}}, {}}), {}), "Empty\n(no rows)\n");
  EXPECT_EQ(render_terminal(with(Table{"Empty", {}, {{}}}), {}), "Empty\n(no rows)\n");
  EXPECT_EQ(render_terminal({}, {}), "");
}

TEST(Terminal, passes_no_control_character_of_a_label_on) {
  const Document document = with(Table{"\x1b[2J", {{"\x07", false}}, {{{"\x1b]0;x\x07"}}}});
  const std::string text = render_terminal(document, {});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
}

}  // namespace
}  // namespace halfwatt
