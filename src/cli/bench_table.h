#pragma once

#include <string>
#include <vector>

#include "measure/record.h"
#include "report/document.h"

namespace halfwatt {

/// What was not measured, since the device does not compute it.
struct LeftOut {
  Setting setting;
  std::string reason;
};
/// "3152x192x1000 NT, fp8: a product of fp8 of 1000 columns, needs a multiple of 16".
std::string text(const LeftOut& left_out);

/// The last window of every setting, in the order in which they were measured first.
std::vector<Measurement> bench_rows(const std::vector<Measurement>& measured);

/// The rows for people. Figures of a window that does not count are struck out; a network that
/// is dead or stalled has none.
Document bench_document(const RecordHeader& header,
                        const std::vector<Measurement>& rows,
                        const std::vector<LeftOut>& left_out);
/// In which products formats of 16 bits or less took no less time than the fastest wider one, a
/// sentence for each; nothing where no products were compared.
std::vector<std::string> narrow_losses(const std::vector<Measurement>& rows);
/// The same for scripts: what is not known, or not valid, is empty or null. A table of commas
/// has no place for what was left out.
std::string bench_csv(const RecordHeader& header, const std::vector<Measurement>& rows);
std::string bench_json(const RecordHeader& header,
                       const std::vector<Measurement>& rows,
                       const std::vector<LeftOut>& left_out);

}  // namespace halfwatt
