# cython: cdivision=True
# Seconds since 1970 as civil time in UTC, and back: counting days from a year that begins in March, so that leap
# days end a year. Whoever makes or reads a datetime has called import_datetime(). This asks datetime.h itself, since
# cpython.datetime puts 30,000 octets of C into each module, used or not.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <datetime.h>
    static inline int amqpcodec_import_datetime(void) {
        PyDateTime_IMPORT;
        return PyDateTimeAPI ? 0 : -1;
    }
    static inline PyObject *amqpcodec_time(int year, int month, int day, int second, PyObject *zone) {
        return PyDateTimeAPI->DateTime_FromDateAndTime(
            year, month, day, second / 3600, second / 60 % 60, second % 60, 0, zone, PyDateTimeAPI->DateTimeType);
    }
    #define amqpcodec_utc(year, month, day, second) \
        amqpcodec_time(year, month, day, second, PyDateTime_TimeZone_UTC)
    /* Whether a datetime has no time zone or the usual UTC, without counting references to these. */
    #define amqpcodec_is_in_utc(value) (!((PyDateTime_DateTime *)(value))->hastzinfo \
        || ((PyDateTime_DateTime *)(value))->tzinfo == PyDateTime_TimeZone_UTC)
    """
    int import_datetime "amqpcodec_import_datetime"() except -1
    PyObject *utc "PyDateTime_TimeZone_UTC"
    object new_time "amqpcodec_time"(int year, int month, int day, int second, object zone)
    PyObject *time_in_utc "amqpcodec_utc"(int year, int month, int day, int second) noexcept
    bint is_in_utc "amqpcodec_is_in_utc"(object value) noexcept
    bint PyDateTime_CheckExact(object value) noexcept
    PyObject *datetime_tzinfo "PyDateTime_DATE_GET_TZINFO"(object value) noexcept
    int datetime_year "PyDateTime_GET_YEAR"(object value) noexcept
    int datetime_month "PyDateTime_GET_MONTH"(object value) noexcept
    int datetime_day "PyDateTime_GET_DAY"(object value) noexcept
    int datetime_hour "PyDateTime_DATE_GET_HOUR"(object value) noexcept
    int datetime_minute "PyDateTime_DATE_GET_MINUTE"(object value) noexcept
    int datetime_second "PyDateTime_DATE_GET_SECOND"(object value) noexcept
    int datetime_microsecond "PyDateTime_DATE_GET_MICROSECOND"(object value) noexcept
    const unsigned long long LAST_SECOND "253402300799ULL"  # 9999-12-31T23:59:59Z, the end of what a datetime can hold


cdef struct Civil:
    int year, month, day
    int second  # of the day


cdef inline Civil civil_time(uint64_t seconds) noexcept nogil:
    """Civil-day arithmetic; not beyond the year 9999."""
    cdef int days, era, day_of_era, year_of_era, day_of_year, month_from_march
    cdef Civil civil
    days = <int>(seconds // 86400) + 719468  # since 0000-03-01, so that leap days end a year
    civil.second = <int>(seconds % 86400)
    era = days // 146097
    day_of_era = days - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    civil.day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    civil.month = <int>(month_from_march + 3 if month_from_march < 10 else month_from_march - 9)
    civil.year = year_of_era + era * 400 + <int>(civil.month <= 2)
    return civil


cdef inline object time_of(uint64_t seconds):
    """An aware UTC datetime, or the number itself beyond the year 9999."""
    cdef Civil civil
    if seconds > LAST_SECOND:
        return seconds
    civil = civil_time(seconds)
    return new_time(civil.year, civil.month, civil.day, civil.second, <object>utc)


cdef inline object naive_time(uint64_t seconds):
    """Return the time without a time zone; not beyond the year 9999."""
    cdef Civil civil = civil_time(seconds)
    return new_time(civil.year, civil.month, civil.day, civil.second, None)


cdef inline int64_t seconds_in_utc(object value):
    """Seconds since 1970 of a datetime that is in UTC, by civil-day arithmetic; fractions round down."""
    cdef int64_t year = datetime_year(value)
    cdef int64_t month = datetime_month(value)
    cdef int64_t days
    if month <= 2:  # years that begin in March end with their leap day
        year -= 1
        month += 12
    days = year * 365 + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5
    days += datetime_day(value) - 1 - 719468
    return days * 86400 + datetime_hour(value) * 3600 + datetime_minute(value) * 60 + datetime_second(value)
