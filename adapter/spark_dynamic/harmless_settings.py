"""Settings that cannot change the rows of a query: a reviewed list, with a reason for each part.

What may change rows is in `row_settings`, with its default. A test on a real Spark requires that
every setting under `spark.sql.` is in one of the two. A name that ends in a dot stands for all
names that begin with it.
"""

from typing import Final

_SQL: Final = "spark.sql."

_HOW_FAST: Final = (
    "adaptive.", "addPartitionInBatch.size", "alwaysInlineCommonExpr",
    "analyzer.canonicalization.", "analyzer.maxIterations", "autoBroadcastJoinThreshold",
    "broadcastExchange.", "broadcastTimeout", "bucketing.", "cache.serializer",
    "cartesianProductExec.", "cbo.", "classic.", "codegen.", "columnVector.", "connect.",
    "constraintPropagation.", "crossJoin.", "csv.filterPushdown.", "csv.parser.inputBufferSize",
    "cteRecursionAnchorRowsLimitToConvertToLocalRelation", "cteRelationDefMaxRows.",
    "dataSource.alwaysCreateV2Predicate", "dataSource.skipAssertOnPredicatePushdown",
    "defaultCacheStorageLevel", "defaultSizeInBytes", "exchange.", "execution.",
    "files.maxPartitionBytes", "files.maxPartitionNum", "files.minPartitionNum",
    "files.openCostInBytes", "filesourceTableRelationCacheSize", "inMemoryColumnarStorage.",
    "inMemoryTableScanStatistics.", "join.", "json.filterPushdown.", "json.useUnsafeRow",
    "lazySetOperatorOutput.", "leafNodeDefaultParallelism", "limit.",
    "mapZipWithUsesJavaCollections", "maxBroadcastTableSize", "maxSinglePartitionBytes",
    "metadataCacheTTLSeconds", "objectHashAggregate.", "optimizeNullAwareAntiJoin", "optimizer.",
    "parquet.aggregatePushdown", "parquet.columnarReaderBatchSize",
    "parquet.enableNestedColumnVectorizedReader", "parquet.enableNullTypeVectorizedReader",
    "parquet.enableVectorizedReader", "parquet.filterPushdown", "parquet.filterPushdown.",
    "parquet.pushdown.", "parquet.recordLevelFilter.", "parser.eagerEvalOfUnresolvedInlineTable",
    "parser.manageParserCaches", "parser.parserDfaCacheFlushRatio",
    "parser.parserDfaCacheFlushThreshold", "planner.", "requireAllClusterKeysForCoPartition",
    "requireAllClusterKeysForDistribution", "resultQueryStage.", "scriptTransformation.",
    "session.localRelationBatchOfChunksSizeBytes", "session.localRelationCacheThreshold",
    "session.localRelationChunkSizeBytes", "session.localRelationChunkSizeLimit",
    "session.localRelationChunkSizeRows", "session.localRelationSizeLimit", "sessionWindow.",
    "shuffle.", "shuffleDependency.", "shuffledHashJoinFactor", "shuffleExchange.", "sort.",
    "sortMergeJoinExec.", "sources.bucketing.", "sources.fileCompressionFactor",
    "sources.ignoreDataLocality", "sources.parallelPartitionDiscovery.",
    "sources.useListFilesFileSystemList", "sources.v2.", "statistics.",
    "subexpressionElimination.", "subquery.", "unionOutputPartitioning",
    "useCommonExprIdForAlias", "variant.pushVariantIntoScan", "window.", "windowExec.",
)  # fmt: skip
_WHAT_PEOPLE_SEE: Final = (
    "binaryOutputStyle", "cli.", "dataframeCache.", "dataFrameQueryContext.", "debug", "debug.",
    "error.", "event.", "expressionTreeChangeLog.", "extendedExplainProviders",
    "lightweightPlanChangeValidation", "maxMetadataStringLength", "maxPlanStringLength",
    "nameResolutionLog.", "planChangeLog.", "planChangeValidation", "queryExecutionListeners",
    "redaction.", "repl.", "stackTracesInDataFrameContext", "thriftserver.", "thriftServer.",
    "ui.",
)  # fmt: skip
# Where things are: a source is known by the place of its log.
_PLACES: Final = (
    "artifact.", "catalog.", "catalogImplementation", "defaultCatalog",
    "defaultUrlStreamHandlerFactory.", "extensions", "extensions.", "globalTempDatabase", "hive.",
    "maven.", "sources.disabledJdbcConnProviderList", "warehouse.",
)  # fmt: skip
# How files are written. Rows of a Delta table read the same, however its files are written.
_WRITING: Final = (
    "avro.compression.", "avro.deflate.", "avro.xz.", "avro.zstandard.", "defaultColumn.",
    "dropTableOnView.", "files.maxRecordsPerFile", "fileSource.", "insertIntoReplaceOn.",
    "insertIntoReplaceOnByName.", "insertIntoReplaceUsing.", "insertIntoReplaceUsingByName.",
    "insertNestedTypeCoercion.", "maxConcurrentOutputFileWriters", "mergeNestedTypeCoercion.",
    "parquet.compression.", "parquet.fieldId.", "parquet.output.", "parquet.outputTimestampType",
    "parquet.variant.", "parquet.writeLegacyFormat", "sources.commitProtocolClass",
    "sources.default", "sources.outputCommitterClass", "sources.partitionOverwriteMode",
    "sources.schemaStringLengthThreshold", "storeAssignmentPolicy", "truncateTable.",
    "variant.forceShreddingSchemaForTest", "variant.inferShreddingSchema", "variant.shredding.",
    "variant.writeShredding.",
)  # fmt: skip
# No query of a dynamic table reaches them: streaming, pipelines, Python, scripts, and tables that
# are not Delta, whose readers are refreshed in full on every run.
_OUT_OF_REACH: Final = (
    "avro.filterPushdown.", "datetime.", "orc.", "parquet.mergeSchema",
    "parquet.respectSummaryFiles", "pipelines.", "pyspark.", "python.", "runSQLOnFiles",
    "scripting.", "sources.binaryFile.", "sources.useV1SourceList", "streaming.",
    "transposeMaxValues", "udt.", "view.maxNestedViewDepth",
)  # fmt: skip
# Exceptions in harmless families: old mistakes that can be switched on, and what Delta makes of
# values that it writes or reads.
_ALL_THE_SAME: Final = frozenset({
    "spark.sql.optimizer.decorrelateExistsSubqueryLegacyIncorrectCountHandling.enabled",
    "spark.sql.optimizer.decorrelateSubqueryLegacyIncorrectCountHandling.enabled",
    "spark.sql.optimizer.decorrelateSubqueryPreventConstantHoldingForCountBug.enabled",
    "spark.sql.optimizer.enableCsvExpressionOptimization",
    "spark.sql.optimizer.enableJsonExpressionOptimization",
    "spark.sql.optimizer.metadataOnly",
    "spark.sql.optimizer.scalarSubqueryUseSingleJoin",
    "spark.sql.optimizer.wrapExistsInAggregateFunction",
    "spark.databricks.delta.convertEmptyToNullForStringPartitionCol",
    "spark.databricks.delta.failOnPartitionValueParsingError",
    "spark.databricks.delta.insert.preserveNullSourceStructs",
    "spark.databricks.delta.merge.preserveNullSourceStructs",
    "spark.databricks.delta.normalizePartitionValuesOnRead",
    "spark.databricks.delta.updateAndMergeCastingFollowsAnsiEnabledFlag",
    "spark.databricks.delta.write.utcTimestampPartitionValues",
})  # fmt: skip

_REVIEWED: Final = tuple(
    _SQL + name
    for part in (_HOW_FAST, _WHAT_PEOPLE_SEE, _PLACES, _WRITING, _OUT_OF_REACH)
    for name in part
)
_NAMES: Final = frozenset(name for name in _REVIEWED if not name.endswith("."))
_FAMILIES: Final = tuple(name for name in _REVIEWED if name.endswith("."))


def is_harmless(key: str) -> bool:
    """Tell whether a setting is known not to change rows.

    >>> is_harmless("spark.sql.shuffle.partitions"), is_harmless("spark.driver.port")
    (True, True)
    >>> is_harmless("spark.sql.mapKeyDedupPolicy"), is_harmless("spark.sql.of.another.version")
    (False, False)
    """
    if key in _ALL_THE_SAME:
        return False
    # Outside `spark.sql.` are core settings (memory, network, scheduling, jars, file systems),
    # those of Delta's log, and names of the user's own: these count where a text names them.
    return not key.startswith(_SQL) or key in _NAMES or key.startswith(_FAMILIES)
