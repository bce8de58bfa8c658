#include "report/odd_document.h"

#include <limits>
#include <string>

namespace halfwatt {
namespace {

const std::string kScript = "</script><script>document.title = 'owned'</script><!--";
const std::string kImage = "\"'><img src=https://example.invalid/x onerror=alert(1)>&amp;";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Chart odd_chart(std::string id, bool logarithmic, std::vector<ChartPoint> points) {
  return {std::move(id),
          kImage,
          {"x " + kScript, logarithmic},
          {"y " + kImage, logarithmic},
          {{kScript, std::move(points)}, {kImage, {{1, 1}}, Emphasis::struck, false}},
          {1}};
}

}  // namespace

Document odd_document() {
  const std::string broken = "broken \xC3( \xFF \xED\xA0\x80";
  const Table table{kScript,
                    {{kImage, false}, {kScript}},
                    {{{kImage}, {kScript, Emphasis::struck}}, {{broken, Emphasis::bad}}},
                    false};
  Table details = table;
  details.details = true;
  return {kScript,
          kImage,
          {Heading{kScript}, Heading{kImage}, Heading{broken}, Heading{"{{body}} {{charts}}"},
           Paragraph{kScript + "\n" + kImage, Emphasis::struck}, Note{kImage, true}, table,
           details, Chart{"no-lines", "No lines"},
           Chart{"no-points", "No points", {}, {"", true}, {{"empty"}}},
           odd_chart("one-point", false, {{5, 7, 6, {}, true, kScript}}),
           odd_chart("zero-on-log", true, {{0, 0}, {10, 100, 0, 120}}),
           odd_chart("not-a-number", true, {{1, kNan}, {2, 3, kNan, 4}, {kNan, 4}, {3, 5}}),
           odd_chart("decades", true, {{1e-3, 1e-9}, {1, 1}, {1e6, 1e9}}),
           odd_chart("negative", false, {{-5, -7, -9, -6}, {0, 0}, {5, 1e-12}})}};
}

}  // namespace halfwatt
