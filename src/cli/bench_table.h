#pragma once

#include <string>
#include <vector>

#include "measure/record.h"
#include "report/document.h"

namespace halfwatt {

/// The last window of every setting, in the order in which they were measured first.
std::vector<Measurement> bench_rows(const std::vector<Measurement>& measured);

/// The rows for people. Figures of a window that does not count are struck out; a network that
/// is dead or stalled has none.
Document bench_document(const RecordHeader& header, const std::vector<Measurement>& rows);
/// In which products formats of 16 bits or less took no less time than the fastest wider one, a
/// sentence for each; nothing where no products were compared.
std::vector<std::string> narrow_losses(const std::vector<Measurement>& rows);
/// The same for scripts: what is not known, or not valid, is empty or null.
std::string bench_csv(const RecordHeader& header, const std::vector<Measurement>& rows);
std::string bench_json(const RecordHeader& header, const std::vector<Measurement>& rows);

}  // namespace halfwatt
