#include "report/html.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "report/odd_document.h"
#include "report/page.h"
#include "report/study_document.h"

namespace halfwatt {
namespace {

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

/// The page without its scripts and its style: what came from the document.
std::string markup(const Document& document) {
  const std::string page = render_html(document);
  const std::size_t from = page.find("<body>");
  return page.substr(from, page.find("<footer>") - from);
}

std::string markup(Block block) { return markup(Document{"", "", {std::move(block)}}); }

nlohmann::json charts_of(const std::string& page) {
  constexpr std::string_view kStart = "<script type=\"application/json\" id=\"charts\">";
  const std::size_t from = page.find(kStart) + kStart.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST(Html, shows_title_and_provenance) {
  const std::string page = markup(Document{"RTX 3090", "recorded", {}});
  EXPECT_TRUE(
      contains(page, "<h1>RTX 3090</h1>\n<span class=\"badge recorded\">recorded</span>"));
}

TEST(Html, renders_tables_with_scopes_and_emphasis) {
  const std::string page = markup(
      Table{"Limits",
            {{"series", false}, {"95 %"}},
            {{{"train"}, {"300", Emphasis::good}}, {{"half"}, {"270", Emphasis::struck}}}});
  EXPECT_TRUE(contains(page,
                       "<caption>Limits</caption>\n"
                       "<thead><tr><th scope=\"col\">series</th>"
                       "<th scope=\"col\" class=\"number\">95 %</th></tr>\n</thead>"));
  EXPECT_TRUE(contains(page,
                       "<tr><th scope=\"row\">train</th>"
                       "<td class=\"number good\">300</td></tr>"));
  EXPECT_TRUE(contains(page, "<td class=\"number struck\"><s>270</s></td>"));
}

TEST(Html, folds_raw_rows_away) {
  const std::string page = markup(Table{"Raw rows", {{"limit"}}, {{{"150"}}, {{"160"}}}, true});
  EXPECT_TRUE(contains(page, "<details><summary>Raw rows (2 rows)</summary>"));
}

TEST(Html, says_that_a_note_is_a_warning_in_words) {
  EXPECT_TRUE(contains(markup(Note{"hot", true}), "<b>Warning:</b> hot</p>"));
  EXPECT_TRUE(contains(markup(Note{"cold"}), "<p class=\"note\">cold</p>"));
}

TEST(Html, escapes_whatever_a_label_says) {
  const std::string page = render_html(odd_document());
  EXPECT_FALSE(contains(page, "<img"));
  EXPECT_FALSE(contains(page, "<script>document.title"));
  EXPECT_FALSE(contains(page, "'><img"));
  // Ours: the figures, Chart.js and the page's own; a label could only add to them.
  EXPECT_EQ(count(page, "<script"), 3);
  EXPECT_EQ(count(page, "</script"), 3);
  EXPECT_EQ(count(page, "<!--"), 0);
}

TEST(Html, fills_each_slot_once_even_where_a_label_looks_like_one) {
  const std::string page = render_html(odd_document());
  EXPECT_TRUE(contains(page, "<h2 id=\"part-4\">{{body}} {{charts}}</h2>"));
}

TEST(Html, keeps_every_digit_of_the_figures_for_the_charts) {
  Chart chart{"c", "C", {"x", true}, {"y"}, {}, {80, 95}};
  chart.lines = {
      {"a", {{150, 0.1 + 0.2, 1.0 / 3, 5e-324, true, "<b>"}}, Emphasis::struck, false}};
  const auto json = charts_of(render_html({"", "", {chart}}));
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["id"], "c");
  EXPECT_EQ(json[0]["x"]["logarithmic"], true);
  EXPECT_EQ(json[0]["guides"], nlohmann::json({80, 95}));
  const auto& line = json[0]["lines"][0];
  EXPECT_EQ(line["emphasis"], "struck");
  EXPECT_EQ(line["joined"], false);
  const auto& point = line["points"][0];
  EXPECT_EQ(point["y"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(point["low"].get<double>(), 1.0 / 3);
  EXPECT_EQ(point["high"].get<double>(), 5e-324);
  EXPECT_EQ(point["marked"], true);
  EXPECT_EQ(point["label"], "<b>");
}

TEST(Html, gives_each_chart_a_name_for_screen_readers_and_its_figures_as_a_table) {
  Chart chart{"c", "Share", {"limit (W)"}, {"share (%)"}};
  chart.lines = {{"a", {{150, 50}, {160, 60, 59, 61}}}, {"b", {{150, 55}}, Emphasis::struck}};
  const std::string page = markup(chart);
  EXPECT_TRUE(contains(page,
                       "role=\"img\" aria-label=\"Share. Chart of share (%) against "
                       "limit (W). Lines: a, b (struck out). The figures follow as a "
                       "table.\""));
  EXPECT_TRUE(contains(page,
                       "<tr><td class=\"number\">150</td><td class=\"number\">50.000</td>"
                       "<td class=\"number struck\"><s>55.000</s></td></tr>"));
  EXPECT_TRUE(contains(page, "<td class=\"number\">60.000 (59.000 to 61.000)</td>"));
}

TEST(Html, lists_points_one_by_one_where_lines_share_no_x) {
  Chart chart{"c", "Pareto", {"images/s"}, {"J"}};
  chart.lines = {
      {"a", {{1.5, 2, {}, {}, true, "300 W"}}}, {"b", {{2.5, 3}}}, {"c", {{3.5, 4}}}};
  EXPECT_TRUE(contains(markup(chart),
                       "<tr><th scope=\"row\">a</th><td class=\"number\">1.5</td>"
                       "<td class=\"number good\">2.0000</td><td>300 W</td></tr>"));
}

TEST(Html, links_to_headings_where_there_are_many) {
  Document document{"", "", {Heading{"One"}, Heading{"Two"}, Heading{"Three"}}};
  EXPECT_FALSE(contains(markup(document), "<nav"));
  document.blocks.push_back(Heading{"Four"});
  EXPECT_TRUE(contains(markup(document), "<a href=\"#part-4\">Four</a>"));
}

TEST(Html, asks_the_network_for_nothing_and_runs_nothing_but_its_own) {
  const std::string page = render_html(study_document("data/rtx3090_vit_b16.csv"));
  EXPECT_TRUE(contains(page, "default-src 'none'"));
  EXPECT_FALSE(contains(page, "unsafe"));
  const std::string written(page, 0, page.find("<script>"));
  EXPECT_FALSE(contains(written, "src=\""));
  EXPECT_EQ(count(written, "href=\""),
            count(written, "href=\"#part-") + count(written, "href=\"data:,\""));
  EXPECT_FALSE(contains(written, " onclick="));
}

TEST(Html, carries_the_licence_of_chart_js) {
  EXPECT_TRUE(contains(kPageHtml, "Copyright 2014-2022 Chart.js Contributors"));
  EXPECT_TRUE(contains(kPageHtml, "The above copyright notice and this permission notice"));
}

TEST(Html, renders_the_same_document_to_the_same_bytes) {
  EXPECT_EQ(render_html(odd_document()), render_html(odd_document()));
}

TEST(Html, writes_the_page_to_a_file) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "halfwatt_html_test.html";
  const Document document{"RTX 3090", "recorded", {}};
  ASSERT_TRUE(write_html(document, path).has_value());
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), render_html(document));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace halfwatt
